#include "annulet/schedule/ring.hpp"

#include <gtest/gtest.h>

#include "annulet/schedule/validator.hpp"
#include "schedule/plans.hpp"

namespace annulet::schedule {
namespace {

struct Collective {
  const char* name;
  Plan (*generate)(const RingShape&);
  Promise (*promise)(int world, Elements elements);
  Elements (*sends)(Elements elements, int world, int rank);
};

Promise all_reduce(int world, Elements) { return all_reduce_promise(world); }

const Collective kCollectives[] = {
    {"reduce-scatter", ring_reduce_scatter, reduce_scatter_promise, ring_reduce_scatter_sends},
    {"all-gather", ring_all_gather, all_gather_promise, ring_all_gather_sends},
    {"all-reduce", ring_all_reduce, all_reduce, ring_all_reduce_sends},
};

template <class Check>
void for_every_shape(Check check) {
  for (const Collective& collective : kCollectives) {
    for (int world = 1; world <= 17; ++world) {
      for (const Elements elements : {Elements{0}, Elements{1}, Elements{world - 1}, Elements{world},
                                      Elements{world + 1}, Elements{2 * world - 1}, Elements{40}}) {
        for (const Elements segment : {1, 3, 64}) {
          const auto plans = plans_of(world, [&](int rank) {
            return collective.generate({rank, world, elements, segment, 2});
          });
          SCOPED_TRACE(::testing::Message()
                       << collective.name << " p=" << world << " n=" << elements << " segment=" << segment);
          check(collective, world, elements, plans);
        }
      }
    }
  }
}

TEST(RingPlan, EveryElementIsReducedExactlyOnceAndReachesItsOwners) {
  for_every_shape([](const Collective& collective, int world, Elements elements, const std::vector<Plan>& plans) {
    ASSERT_EQ(validate(plans, collective.promise(world, elements)), "");
  });
}

TEST(RingPlan, SendsWhatTheClosedFormSays) {
  for_every_shape([](const Collective& collective, int world, Elements elements, const std::vector<Plan>& plans) {
    for (int rank = 0; rank < world; ++rank) {
      ASSERT_EQ(sent_elements(plans[static_cast<std::size_t>(rank)]), collective.sends(elements, world, rank));
    }
    const bool both_halves = std::string_view(collective.name) == "all-reduce";
    ASSERT_EQ(sent_by_all(plans), ring_all_reduce_total(elements, world) / (both_halves ? 1 : 2));
  });
}

TEST(RingPlan, AllReduceIsReduceScatterFollowedByAllGather) {
  const RingShape shape{2, 5, 37, 3, 2};
  const Plan whole = ring_all_reduce(shape), first = ring_reduce_scatter(shape), second = ring_all_gather(shape);
  ASSERT_EQ(whole.steps.size(), first.steps.size() + second.steps.size());
  for (std::size_t s = 0; s < whole.steps.size(); ++s) {
    const Step& part = s < first.steps.size() ? first.steps[s] : second.steps[s - first.steps.size()];
    EXPECT_EQ(whole.steps[s].action, part.action);
    EXPECT_EQ(whole.steps[s].peer, part.peer);
    EXPECT_EQ(whole.steps[s].from.interval, part.from.interval);
    EXPECT_EQ(whole.steps[s].to.interval, part.to.interval);
  }
}

TEST(RingPlan, HasTwoMessagesPerNeighbourAndStepWithoutSegments) {
  const Plan plan = ring_all_reduce({0, 4, 400, 100, 1});
  const auto sends =
      std::count_if(plan.steps.begin(), plan.steps.end(), [](const Step& s) { return s.action == Action::send; });
  EXPECT_EQ(sends, ring_all_reduce_steps(4));
  EXPECT_EQ(plan.scratch, 100);
}

TEST(RingPlan, OneRankDoesNothing) { EXPECT_TRUE(ring_all_reduce({0, 1, 100, 10, 2}).steps.empty()); }

}  // namespace
}  // namespace annulet::schedule
