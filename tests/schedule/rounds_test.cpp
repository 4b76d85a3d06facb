#include "annulet/schedule/rounds.hpp"

#include <gtest/gtest.h>

#include "annulet/schedule/algorithms.hpp"
#include "annulet/schedule/sparse_all_gather.hpp"
#include "schedule/plans.hpp"

namespace annulet::schedule {
namespace {

// check(plans, collective, algorithm, world) of every algorithm, chunks whole.
template <class Check>
void for_every_algorithm(Check check) {
  for (const Collective collective : collectives()) {
    for (const Algorithm algorithm : algorithms_of(collective)) {
      for (int p = 1; p <= 17; ++p) {
        SCOPED_TRACE(testing::Message() << to_text(collective) << " by " << to_text(algorithm) << ", p=" << p);
        PlanShape shape{0, p, 2 * p + 1, 64, 4, p / 2};
        check(plans_of(p,
                       [&](int rank) {
                         shape.rank = rank;
                         return make_plan(collective, algorithm, shape);
                       }),
              collective, algorithm, p);
      }
    }
  }
}

TEST(Rounds, AreAsManyAsTheStepsThatAreStated) {
  for_every_algorithm([](const std::vector<Plan>& plans, Collective collective, Algorithm algorithm, int p) {
    EXPECT_EQ(rounds_of(plans).count, steps(collective, algorithm, p));
  });
}

TEST(Rounds, OfTheRingSendOneChunkToTheRightEach) {
  const auto plans = plans_of(4, [](int rank) {
    return make_plan(Collective::all_reduce, Algorithm::ring, {rank, 4, 16});
  });
  const Rounds rounds = rounds_of(plans);
  ASSERT_EQ(rounds.count, 6);
  for (const Plan& plan : plans) {
    std::vector<int> sends(7, 0);
    for (std::size_t s = 0; s < plan.steps.size(); ++s) {
      const int round = rounds.of[static_cast<std::size_t>(plan.rank)][s];
      if (plan.steps[s].action != Action::send) continue;
      ++sends[static_cast<std::size_t>(round)];
      const Elements sent = (plan.rank + 8 - round) % 4;  // reduce-scatter; one chunk further in the all-gather
      EXPECT_EQ(plan.steps[s].from.interval, chunk(16, 4, static_cast<int>(round <= 3 ? sent : (sent + 4) % 4)));
    }
    EXPECT_EQ(sends, (std::vector<int>{0, 1, 1, 1, 1, 1, 1}));
  }
}

// Messages of a round wait for nothing in it, and both ends name the same round.
TEST(Rounds, OrderEverythingThatWaits) {
  for_every_algorithm([](const std::vector<Plan>& plans, Collective, Algorithm, int) {
    const Rounds rounds = rounds_of(plans);
    for (std::size_t r = 0; r < plans.size(); ++r) {
      for (std::size_t s = 0; s < plans[r].steps.size(); ++s) {
        const Step& step = plans[r].steps[s];
        const bool message = step.action == Action::send || step.action == Action::receive;
        for (const StepId before : plans[r].after(step)) {
          EXPECT_LE(rounds.of[r][static_cast<std::size_t>(before)] + (message ? 1 : 0), rounds.of[r][s]);
        }
      }
    }
    for (const Meeting& m : meetings_of(plans)) {
      EXPECT_EQ(rounds.of[static_cast<std::size_t>(m.from)][static_cast<std::size_t>(m.send)],
                rounds.of[static_cast<std::size_t>(m.to)][static_cast<std::size_t>(m.receive)]);
    }
  });
}

TEST(Rounds, CutAPlanIntoPartsThatSendTheSame) {
  for_every_algorithm([](const std::vector<Plan>& plans, Collective, Algorithm, int) {
    const Rounds rounds = rounds_of(plans);
    for (const Plan& plan : plans) {
      const auto& of = rounds.of[static_cast<std::size_t>(plan.rank)];
      Elements sent = 0;
      for (int k = 0; k <= rounds.count; ++k) {
        const Plan part = part_of(plan, of, k, k);
        EXPECT_EQ(part.elements, plan.elements + plan.scratch);
        EXPECT_EQ(part.scratch, 0);
        sent += sent_elements(part);
        EXPECT_EQ(sent, sent_elements(part_of(plan, of, 0, k)));
      }
      EXPECT_EQ(sent, sent_elements(plan));
    }
  });
}

TEST(Rounds, OfPlansThatDoNotFitTogetherAreRefused) {
  auto plans = plans_of(3, [](int rank) { return make_plan(Collective::all_reduce, Algorithm::ring, {rank, 3, 6}); });
  plans.pop_back();
  plans.push_back({2, 3, 6, 0, {}, {}});
  EXPECT_THROW(rounds_of(plans), ContractError);
}

// Segment s passes hop h in round s + h + 1.
TEST(Rounds, ShowSegmentsFollowingEachOtherDownAChain) {
  const auto plans = plans_of(4, [](int rank) {
    return make_plan(Collective::broadcast, Algorithm::pipelined_chain, {rank, 4, 10, 2});
  });
  const Rounds rounds = rounds_of(plans);
  EXPECT_EQ(rounds.count, 7);
  for (const Meeting& m : meetings_of(plans)) {
    const Step& send = plans[static_cast<std::size_t>(m.from)].steps[static_cast<std::size_t>(m.send)];
    EXPECT_EQ(rounds.of[static_cast<std::size_t>(m.from)][static_cast<std::size_t>(m.send)],
              send.from.interval.first / 2 + m.from + 1);
  }
}

TEST(Rounds, OfASparseAllGatherSkipEmptyPieces) {
  const std::vector<Elements> lengths{3, 0, 5};
  const auto plans = plans_of(3, [&](int rank) { return sparse_all_gather({rank, lengths}); });
  EXPECT_EQ(rounds_of(plans).count, 2);
}

}  // namespace
}  // namespace annulet::schedule
