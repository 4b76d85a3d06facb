#include "annulet/cost/step.hpp"

#include <gtest/gtest.h>

#include "annulet/base/error.hpp"

namespace annulet::cost {
namespace {

// Two tensors of 1000 bytes, final after 10 and 20 ms; backward ends after 30 ms; 1 ms of norm (on one rank), 2 ms of
// optimiser. Two ranks, alpha 1 ms, a byte in 1 us: a bucket of n bytes takes 2 (1 ms + n/2 us); the record 1 ms + 40
// us.
StepInput two_tensors(Driver driver) {
  StepInput input;
  input.profile = {Seconds(5e-3), {Seconds(10e-3), Seconds(20e-3)}, Seconds(30e-3), Seconds(1e-3), Seconds(2e-3)};
  input.tensors = {250, 250};
  input.sync = {Bytes(1000), Bytes(1000), Bytes(1 << 20), 2};
  input.network = Link{Seconds(1e-3), Seconds(0), SecondsPerByte(1e-6), SecondsPerByte(0), "test"};
  input.world = 2;
  input.driver = driver;
  return input;
}

constexpr double kTail = 1.04e-3 + 0.5e-3 + 2e-3;  // record, half the norm, optimiser

TEST(PredictStep, HidesABucketThatEndsBeforeBackwardDoes) {
  const StepPrediction step = predict_step(two_tensors(Driver::thread));
  ASSERT_EQ(step.buckets.size(), 2U);
  EXPECT_NEAR(step.buckets[0].start.count(), 10e-3, 1e-12);
  EXPECT_NEAR(step.buckets[0].end.count(), 13e-3, 1e-12);
  EXPECT_NEAR(step.buckets[1].end.count(), 23e-3, 1e-12);
  EXPECT_NEAR(step.exposed.count(), 0, 1e-12);
  EXPECT_NEAR(step.control.count(), 1.04e-3, 1e-12);
  EXPECT_NEAR(step.step.count(), 30e-3 + kTail, 1e-12);
}

// Both at once on one port: the second's half follows the first's, and so do the halves that come back.
TEST(PredictStep, ExposesEverythingWithTheBlockingDriver) {
  const StepPrediction step = predict_step(two_tensors(Driver::blocking));
  EXPECT_NEAR(step.buckets[0].ready.count(), 10e-3, 1e-12);
  for (const BucketPrediction& bucket : step.buckets) EXPECT_NEAR(bucket.start.count(), 30e-3, 1e-12);
  EXPECT_NEAR(step.buckets[0].end.count(), 33e-3, 1e-12);
  EXPECT_NEAR(step.exposed.count(), 3.5e-3, 1e-12);
  EXPECT_NEAR(step.step.count(), 30e-3 + 3.5e-3 + kTail, 1e-12);
}

// Rank 1 computes half as long again: its gradients are ready after 15 and 30 ms, and each sum waits for them.
TEST(PredictStep, WaitsForTheSlowestRank) {
  StepInput input = two_tensors(Driver::thread);
  input.spare_core = true;
  input.slowdown = {1, 1.5};
  const StepPrediction step = predict_step(input);
  EXPECT_NEAR(step.buckets[0].end.count(), 18e-3, 1e-12);
  EXPECT_NEAR(step.buckets[1].end.count(), 33e-3, 1e-12);
  EXPECT_NEAR(step.backward_ends.count(), 45e-3, 1e-12);
  EXPECT_NEAR(step.step.count(), 45e-3 + 1.04e-3 + 1.5 * 2.5e-3, 1e-12);
  input.closed_form = true;
  EXPECT_NEAR(predict_step(input).step.count(), step.step.count(), 1e-12);
}

TEST(PredictStep, ExposesTheTailOfABucketThatIsReadyLate) {
  StepInput input = two_tensors(Driver::polling);
  input.profile.ready[1] = Seconds(29e-3);
  const StepPrediction step = predict_step(input);
  EXPECT_NEAR(step.exposed.count(), 2e-3, 1e-12);
  EXPECT_NEAR(step.step.count(), 32e-3 + kTail, 1e-12);
}

// A bucket moves 1000 bytes in and 1000 out and adds 500: 2.5 ms of the core at 1 us a byte, of 3 ms on the wire. The
// first delays the second's launch and both delay the end of backward; a core of its own delays nothing.
TEST(PredictStep, TakesTheTimeOfMovingAndAddingFromTheComputingCore) {
  StepInput input = two_tensors(Driver::polling);
  input.profile.moving = input.profile.adding = SecondsPerByte(1e-6);
  const StepPrediction shared = predict_step(input);
  EXPECT_NEAR(shared.buckets[1].start.count(), 22.5e-3, 1e-6);
  EXPECT_NEAR(shared.backward_ends.count(), 35e-3, 1e-6);
  input.network.inside.moving = SecondsPerByte(2e-6);  // the network knows better: 4.5 ms, and in the way of both
  EXPECT_GT(predict_step(input).backward_ends, shared.backward_ends);
  input.network.inside.moving = SecondsPerByte(0);
  input.driver = Driver::thread;
  EXPECT_NEAR(predict_step(input).backward_ends.count(), 35e-3, 1e-6);
  input.spare_core = true;
  EXPECT_NEAR(predict_step(input).backward_ends.count(), 30e-3, 1e-12);
  input.driver = Driver::blocking;
  EXPECT_NEAR(predict_step(input).backward_ends.count(), 30e-3, 1e-12);
}

TEST(PredictStep, LooksForBadValuesBeforeABucketLeaves) {
  StepInput input = two_tensors(Driver::thread);
  input.profile.check = SecondsPerByte(1e-6);
  const StepPrediction step = predict_step(input);
  EXPECT_NEAR(step.buckets[1].start.count(), 22e-3, 1e-12);
  EXPECT_NEAR(step.backward_ends.count(), 32e-3, 1e-12);
}

TEST(PredictStep, OfOneRankIsItsProfile) {
  StepInput input = two_tensors(Driver::polling);
  input.world = 1;
  input.profile.check = input.profile.moving = SecondsPerByte(1e-6);
  EXPECT_NEAR(predict_step(input).step.count(), 33e-3, 1e-12);
}

TEST(PredictStep, TakesTheClosedFormForManyRanks) {
  StepInput input = two_tensors(Driver::thread);
  input.world = 500;
  const StepPrediction step = predict_step(input);
  EXPECT_NEAR(step.buckets[0].end.count(), 10e-3 + 998 * 1e-3 + 2 * 499.0 / 500 * 1e-3, 1e-9);
  EXPECT_GT(step.buckets[1].end, step.buckets[0].end);
}

TEST(PredictStep, WantsAnInstantForEachTensor) {
  StepInput input = two_tensors(Driver::thread);
  input.profile.ready.pop_back();
  EXPECT_THROW(predict_step(input), ContractError);
}

}  // namespace
}  // namespace annulet::cost
