#include "annulet/schedule/slots.hpp"

#include <gmock/gmock.h>

#include "annulet/base/error.hpp"

namespace annulet::schedule {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Slots, AreTakenInTurnsAndAsLargeAsTheirLargestUse) {
  const std::vector<SlotUse> uses{{0, 5}, {1, 20}, {2, 7}, {3, 9}, {4, 1}};
  const Slots slots = plan_slots(uses, 3);
  EXPECT_THAT(slots.of_use, ElementsAre(0, 1, 2, 0, 1));
  EXPECT_THAT(slots.sizes, ElementsAre(9, 20, 7));
  EXPECT_EQ(slots.total(), 36);
}

// A bucket that stays while others come and go, used twice: as the tied weights in forward and in backward.
TEST(Slots, ABucketThatStaysHasOneOfItsOwn) {
  const std::vector<SlotUse> uses{{9, 100, true}, {1, 10}, {2, 11}, {3, 12}, {9, 100, true}, {3, 12}, {2, 11}, {1, 10}};
  const Slots slots = plan_slots(uses, 2);
  EXPECT_THAT(slots.of_use, ElementsAre(2, 0, 1, 0, 2, 1, 0, 1));
  EXPECT_THAT(slots.sizes, ElementsAre(12, 12, 100));
}

TEST(Slots, AreNoMoreThanAreUsed) {
  EXPECT_THAT(plan_slots(std::vector<SlotUse>{{0, 5}, {1, 6}}, 3).sizes, ElementsAre(5, 6));
  EXPECT_THAT(plan_slots(std::vector<SlotUse>{{0, 5, true}}, 3).sizes, ElementsAre(5));
  EXPECT_THAT(plan_slots({}, 3).sizes, IsEmpty());
  EXPECT_THROW(plan_slots({}, 0), ContractError);
}

// Neighbours never share a slot: backward begins a bucket before the one before it is final.
TEST(GradientSlots, GiveTheBucketOfATiedTensorOneOfItsOwn) {
  const std::vector<Bucket> buckets{{{0, 4}, 0, 2}, {{4, 5}, 2, 3}, {{9, 6}, 3, 5}, {{15, 30}, 5, 7}};
  const Slots tied = gradient_slots(buckets, {false, false, false, false, false, false, true}, 2);
  EXPECT_THAT(tied.of_use, ElementsAre(0, 1, 0, 2));
  EXPECT_THAT(tied.sizes, ElementsAre(6, 5, 30));
  const Slots untied = gradient_slots(buckets, std::vector<bool>(7), 2);
  EXPECT_THAT(untied.of_use, ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(untied.sizes, ElementsAre(6, 30));
  EXPECT_THROW(gradient_slots(buckets, std::vector<bool>(6), 2), ContractError);
}

}  // namespace
}  // namespace annulet::schedule
