#include "annulet/measure/cores.hpp"

#include <gmock/gmock.h>

namespace annulet::measure {
namespace {

TEST(AffinityMask, HasTheCoreThisThreadRunsOn) { EXPECT_GE(count(affinity_mask()), 1); }

TEST(CoreMask, CountsAllBitsOfAllWords) {
  EXPECT_EQ(count(CoreMask{-1, 1}), 65);
  EXPECT_EQ(count(CoreMask{0, 0}), 0);
}

TEST(Cores, OfRanksThatShareAllCoresAreCountedOnce) {
  const Cores cores = cores_of_node(CoreMask{0b1111, 0b1111}, 1, 1);
  EXPECT_EQ(cores.in_mask, 4);
  EXPECT_EQ(cores.distinct_on_node, 4);
  EXPECT_EQ(cores.ranks_on_node, 2);
  EXPECT_EQ(cores.in_use_on_node, 2);
}

TEST(Cores, OfBoundRanksAddUp) {
  const Cores cores = cores_of_node(CoreMask{0b0001, 0, 0, 0b1000}, 2, 1);
  EXPECT_EQ(cores.in_mask, 1);
  EXPECT_EQ(cores.distinct_on_node, 2);
  EXPECT_EQ(cores.in_use_on_node, 2);
}

TEST(Cores, InUseAreNoMoreThanThereAre) {
  EXPECT_EQ(cores_of_node(CoreMask{0b11, 0b11, 0b11, 0b11}, 1, 0).in_use_on_node, 2);
  EXPECT_EQ(cores_of_node(CoreMask{0b1111, 0b1111}, 1, 0, 2).in_use_on_node, 4);
}

TEST(Cores, OfAWorldOfOneAreThoseOfItsMask) {
  const Cores cores = find_cores({});
  EXPECT_EQ(cores.in_mask, count(affinity_mask()));
  EXPECT_EQ(cores.distinct_total, cores.in_mask);
  EXPECT_EQ(cores.in_use_total, 1);
}

TEST(BindingWarning, NamesTheThreadsThatShareACore) {
  const Cores bound = cores_of_node(CoreMask{0b1}, 1, 0);
  EXPECT_THAT(binding_warning(bound, 2), testing::HasSubstr("2 threads of this rank share 1 core(s)"));
  EXPECT_EQ(binding_warning(bound, 1), "");
}

}  // namespace
}  // namespace annulet::measure
