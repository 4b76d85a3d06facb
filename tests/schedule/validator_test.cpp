// The validator itself must reject what is wrong, or the other tests prove nothing.
#include "annulet/schedule/validator.hpp"

#include <gmock/gmock.h>

#include "annulet/schedule/ring.hpp"
#include "schedule/plans.hpp"

namespace annulet::schedule {
namespace {

using testing::HasSubstr;

std::vector<Plan> good() {
  return plans_of(3, [](int rank) { return ring_all_reduce({rank, 3, 6, 1, 2}); });
}

Step& first(Plan& plan, Action action) {
  for (Step& step : plan.steps) {
    if (step.action == action) return step;
  }
  throw std::logic_error("no such step");
}

std::string verdict(const std::vector<Plan>& plans) { return validate(plans, all_reduce_promise(3)); }

TEST(Validator, AcceptsARing) { EXPECT_EQ(verdict(good()), ""); }

TEST(Validator, FindsAStepThatWritesIntoTheInput) {
  auto plans = good();
  first(plans[2], Action::combine).to.place = Place::input;
  EXPECT_THAT(verdict(plans), HasSubstr("rank 2: a step writes into the input"));
}

TEST(Validator, FindsASendWithoutReceive) {
  auto plans = good();
  plans[0].steps.push_back({Action::send, 1, {Place::data, {0, 1}}, {}, 0, 0});
  EXPECT_NE(verdict(plans), "");
}

TEST(Validator, FindsCountsThatDiffer) {
  auto plans = good();
  first(plans[1], Action::send).from.interval.count = 0;
  EXPECT_THAT(verdict(plans), HasSubstr("receives 1 elements where rank 1 sends 0"));
}

TEST(Validator, FindsAContributionCombinedTwice) {
  auto plans = good();
  Step& step = first(plans[0], Action::combine);
  step.from = step.to;
  EXPECT_THAT(verdict(plans), HasSubstr("are combined"));
}

TEST(Validator, FindsADeadlockUnderRendezvous) {
  std::vector<Plan> plans;
  for (int rank = 0; rank < 2; ++rank) {  // both send first and receive only after the send has completed
    PlanBuilder builder(rank, 2, 1);
    const StepId sent = builder.send(1 - rank, {Place::data, {0, 1}}, {});
    const StepId got = builder.receive(1 - rank, {Place::scratch, {0, 1}}, {sent});
    builder.combine({Place::scratch, {0, 1}}, {Place::data, {0, 1}}, {got, sent});
    plans.push_back(std::move(builder).finish());
  }
  EXPECT_THAT(validate(plans, all_reduce_promise(2)), HasSubstr("deadlock"));
}

TEST(Validator, FindsAReceiveThatOverwritesWhatIsStillBeingSent) {
  auto plans = good();
  for (Step& step : plans[2].steps) {
    if (step.action == Action::receive && step.to.place == Place::data) step.edge_count = 0;
  }
  EXPECT_THAT(verdict(plans), HasSubstr("unordered"));
}

// Each sends to the other in order, but what rank 0 sends first is received last: it needs two messages in flight.
TEST(Validator, FindsPlansThatNeedSeveralMessagesInFlight) {
  const Region first{Place::data, {0, 1}}, second{Place::data, {1, 1}};
  std::vector<Plan> plans;
  for (int rank = 0; rank < 3; ++rank) {
    PlanBuilder builder(rank, 3, 2);
    if (rank == 0) {
      builder.send(1, first, {});
      builder.send(2, second, {});
    } else if (rank == 1) {
      builder.receive(0, first, {builder.receive(2, second, {})});
    } else {
      builder.send(1, second, {builder.receive(0, second, {})});
    }
    plans.push_back(std::move(builder).finish());
  }
  EXPECT_THAT(validate(plans, broadcast_promise(0)), HasSubstr("deadlock"));
}

TEST(Validator, FindsABroadcastThatForgetsARank) {
  std::vector<Plan> plans;
  for (int rank = 0; rank < 3; ++rank) {
    PlanBuilder builder(rank, 3, 1);
    const Region all{Place::data, {0, 1}};
    if (rank == 0) builder.send(1, all, {});
    if (rank == 1) builder.receive(0, all, {});
    plans.push_back(std::move(builder).finish());
  }
  EXPECT_THAT(validate(plans, broadcast_promise(0)), HasSubstr("rank 2: element 0 holds contributions 0, wanted 1"));
}

TEST(Validator, FindsAReduceThatLeavesTheSumElsewhere) {
  std::vector<Plan> plans;
  for (int rank = 0; rank < 2; ++rank) {
    PlanBuilder builder(rank, 2, 1);
    const Region all{Place::data, {0, 1}}, slot{Place::scratch, {0, 1}};
    if (rank == 0) builder.send(1, all, {});
    if (rank == 1) builder.combine(slot, all, {builder.receive(0, slot, {})});
    plans.push_back(std::move(builder).finish());
  }
  EXPECT_EQ(validate(plans, reduce_promise(2, 1)), "");
  EXPECT_THAT(validate(plans, reduce_promise(2, 0)), HasSubstr("rank 0: element 0 holds contributions"));
}

TEST(Validator, FindsAMissingSum) {
  auto plans = good();
  for (Plan& plan : plans) {
    for (Step& step : plan.steps) {
      if (step.action == Action::combine) step.action = Action::copy;
    }
  }
  EXPECT_THAT(verdict(plans), HasSubstr("holds contributions"));
}

}  // namespace
}  // namespace annulet::schedule
