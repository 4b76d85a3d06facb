#include "annulet/cost/bucket_cap.hpp"

#include <gtest/gtest.h>

namespace annulet::cost {
namespace {

// Eight tensors of 64 KiB, final one by one during 80 ms of backward.
StepInput eight_tensors(Seconds alpha, ByteRate bandwidth) {
  StepInput input;
  input.tensors.assign(8, 1 << 14);
  input.profile = estimated_profile(input.tensors, input.element, Flops(120e6), FlopRate(1e9));
  input.profile.moving = input.profile.adding = SecondsPerByte(0);
  input.network = Link{alpha, Seconds(0), SecondsPerByte(1 / bandwidth.value()), SecondsPerByte(0), "test"};
  input.world = 2;
  input.driver = Driver::thread;
  return input;
}

TEST(BucketCap, IsSmallWhereBandwidthCountsAndTheWholeModelWhereLatencyDoes) {
  EXPECT_EQ(cheapest_bucket_cap(eight_tensors(Seconds(1e-6), ByteRate(6e6))).cap, Bytes(64 << 10));
  EXPECT_EQ(cheapest_bucket_cap(eight_tensors(Seconds(0.1), ByteRate(1e9))).cap, Bytes(512 << 10));
}

// Nothing overlaps with the blocking driver: one bucket is as good as eight.
TEST(BucketCap, IsTheLargestOfThoseThatAreAsGood) {
  StepInput input = eight_tensors(Seconds(1e-6), ByteRate(6e6));
  input.driver = Driver::blocking;
  EXPECT_EQ(cheapest_bucket_cap(input).cap, Bytes(512 << 10));
}

TEST(BucketCap, ComesWithTheStepOfEveryCap) {
  const BucketCapChoice choice = cheapest_bucket_cap(eight_tensors(Seconds(1e-6), ByteRate(6e6)));
  ASSERT_EQ(choice.curve.size(), 4U);
  const std::size_t buckets[] = {8, 4, 2, 1};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(choice.curve[i].cap, Bytes(64 << 10) * (1 << i));
    EXPECT_EQ(choice.curve[i].buckets, buckets[i]);
    EXPECT_GE(choice.curve[i].step, choice.curve[i / 2].step);
  }
}

TEST(EstimatedProfile, SharesBackwardOutByElements) {
  const StepProfile profile = estimated_profile({100, 0, 300}, Bytes(4), Flops(3e9), FlopRate(1e9));
  EXPECT_NEAR(profile.backward_begins.count(), 1, 1e-12);
  EXPECT_NEAR(profile.ready[0].count(), 1.5, 1e-12);
  EXPECT_NEAR(profile.ready[1].count(), 1.5, 1e-12);
  EXPECT_NEAR(profile.ready[2].count(), 3, 1e-12);
  EXPECT_NEAR(profile.backward_ends.count(), 3, 1e-12);
}

}  // namespace
}  // namespace annulet::cost
