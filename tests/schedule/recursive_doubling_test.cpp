#include "annulet/schedule/recursive_doubling.hpp"

#include <gtest/gtest.h>

#include "annulet/schedule/validator.hpp"
#include "schedule/plans.hpp"

namespace annulet::schedule {
namespace {

TEST(RecursiveDoubling, ReducesEveryElementOnceForAnyNumberOfRanks) {
  for (int world = 1; world <= 17; ++world) {
    for (const Elements elements : {0, 1, 5}) {
      const auto plans =
          plans_of(world, [&](int rank) { return recursive_doubling_all_reduce(rank, world, elements); });
      ASSERT_EQ(validate(plans, all_reduce_promise(world)), "") << "p=" << world << " n=" << elements;
      ASSERT_EQ(sent_by_all(plans), recursive_doubling_total(elements, world)) << "p=" << world;
    }
  }
}

TEST(RecursiveDoubling, TakesTheLogarithmOfTheRanksInSteps) {
  EXPECT_EQ(recursive_doubling_steps(1), 0);
  EXPECT_EQ(recursive_doubling_steps(8), 3);
  EXPECT_EQ(recursive_doubling_steps(9), 5);
}

}  // namespace
}  // namespace annulet::schedule
