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

// Weights are updated in 0.5 ms a bucket and gathered in 1.5 ms, one half behind the other's on the port; forward comes
// to the second tensor after 2 ms and to the first after 4. Halves of buckets are reduce-scattered in 1.5 ms.
TEST(PredictStep, HidesTheWeightsOfStageOneBehindForward) {
  StepInput input = two_tensors(Driver::thread);
  input.spare_core = true, input.stage = 1;
  const StepPrediction step = predict_step(input);
  EXPECT_NEAR(step.weights.count(), 0, 1e-12);
  EXPECT_NEAR(step.backward_begins.count(), 5e-3, 1e-12);
  EXPECT_NEAR(step.buckets[0].end.count(), 11.5e-3, 1e-12);
  EXPECT_NEAR(step.buckets[1].end.count(), 21.5e-3, 1e-12);
  EXPECT_NEAR(step.optimizer.count(), 0.5e-3 + 1e-3, 1e-12);
  EXPECT_NEAR(step.step.count(), 30e-3 + 1.04e-3 + 1.5e-3, 1e-12);
  input.stage = 2;
  EXPECT_NEAR(predict_step(input).step.count(), step.step.count(), 1e-12);
}

// With 4 ms of latency the second bucket's weights, sent 0.5 ms before the step begins, arrive after 4 ms of it:
// forward waits for 2 ms.
TEST(PredictStep, WaitsInForwardForWeightsThatAreLate) {
  StepInput input = two_tensors(Driver::thread);
  input.spare_core = true, input.stage = 1;
  input.network.inside.alpha = Seconds(4e-3);
  const StepPrediction step = predict_step(input);
  EXPECT_NEAR(step.weights.count(), 2e-3, 1e-12);
  EXPECT_NEAR(step.backward_begins.count(), 7e-3, 1e-12);
  EXPECT_NEAR(step.forward.count(), 5e-3, 1e-12);
  EXPECT_NEAR(step.backward_ends.count(), 32e-3, 1e-12);
}

// Both all-gathers begin where forward waits first, at 2 ms. The first ends 1.5 ms later; the other one, due in the
// meantime, is seen when forward waits again, after 2 ms more. The reduce-scatters begin after backward.
TEST(PredictStep, MovesNothingWhileABlockingRankComputes) {
  StepInput input = two_tensors(Driver::blocking);
  input.stage = 1;
  const StepPrediction step = predict_step(input);
  EXPECT_NEAR(step.weights.count(), 1.5e-3, 1e-12);
  EXPECT_NEAR(step.backward_begins.count(), 6.5e-3, 1e-12);
  EXPECT_NEAR(step.exposed.count(), 2e-3, 1e-12);
  EXPECT_NEAR(step.step.count(), 31.5e-3 + 2e-3 + 1.04e-3 + 1.5e-3, 1e-12);
}

// Two slots hold both layers until forward leaves the second tensor's at 4 ms; the first tensor's, gathered from then
// on for backward, arrives 0.5 ms after backward has begun.
TEST(PredictStep, GathersLayersInBothPassesAtStageThree) {
  StepInput input = two_tensors(Driver::thread);
  input.spare_core = true, input.stage = 3, input.layers = {0, 1};
  const StepPrediction step = predict_step(input);
  EXPECT_NEAR(step.weights.count(), 0.5e-3, 1e-12);
  EXPECT_NEAR(step.buckets[0].start.count(), 10.5e-3, 1e-12);
  EXPECT_NEAR(step.buckets[1].end.count(), 22e-3, 1e-12);
  EXPECT_NEAR(step.step.count(), 30.5e-3 + 1.04e-3 + 1.5e-3, 1e-12);
  input.layers.clear();
  EXPECT_THROW(predict_step(input), ContractError);
}

// Five buckets become final at once, in three slots: the fourth begins when the first has been summed.
TEST(PredictStep, WaitsForRoomForGradientsFromStageTwoOn) {
  StepInput input = two_tensors(Driver::thread);
  input.spare_core = true, input.tensors.assign(5, 250);
  input.profile.ready.assign(5, Seconds(10e-3));
  for (const int stage : {1, 2}) {
    input.stage = stage;
    const StepPrediction step = predict_step(input);
    EXPECT_NEAR(step.room.count(), stage == 1 ? 0 : 2e-3, 1e-12);
    EXPECT_NEAR(step.buckets[3].start.count(), stage == 1 ? 10e-3 : 11.5e-3, 1e-12);
  }
}

// 16 of 250 values, 128 bytes with their positions: 1.128 ms. Choosing delays launches, adding the pieces of two ranks
// takes 0.256 ms in the end.
TEST(PredictStep, GathersSparseGradients) {
  StepInput input = two_tensors(Driver::thread);
  input.spare_core = true;
  input.sync.compression = {schedule::Compression::Kind::top_k, 16};
  EXPECT_NEAR(predict_step(input).buckets[0].end.count(), 11.128e-3, 1e-12);
  EXPECT_EQ(predict_step(input).buckets[0].bytes, Bytes(128));
  input.profile.choosing = input.profile.spreading = SecondsPerByte(1e-6);
  const StepPrediction step = predict_step(input);
  EXPECT_NEAR(step.buckets[0].start.count(), 11e-3, 1e-12);
  EXPECT_NEAR(step.buckets[0].end.count(), 12.128e-3 + 0.256e-3, 1e-12);
  EXPECT_NEAR(step.buckets[1].start.count(), 22e-3, 1e-12);
  EXPECT_NEAR(step.backward_ends.count(), 32e-3, 1e-12);
}

// Halves of 250 bytes: 1.25 ms each way; made narrow and wide again in 0.25 ms each.
TEST(PredictStep, SendsHalfTheBytesAsBfloat16) {
  StepInput input = two_tensors(Driver::thread);
  input.spare_core = true;
  input.sync.compression.kind = schedule::Compression::Kind::bfloat16;
  EXPECT_NEAR(predict_step(input).buckets[0].end.count(), 12.5e-3, 1e-12);
  input.profile.narrowing = SecondsPerByte(1e-6);
  EXPECT_NEAR(predict_step(input).buckets[0].end.count(), 13.5e-3, 1e-12);
  input.stage = 1;  // half of it, and weights of 1.5 ms as before
  EXPECT_NEAR(predict_step(input).buckets[0].end.count(), 11.75e-3, 1e-12);
}

TEST(PredictStep, WantsAnInstantForEachTensor) {
  StepInput input = two_tensors(Driver::thread);
  input.profile.ready.pop_back();
  EXPECT_THROW(predict_step(input), ContractError);
}

}  // namespace
}  // namespace annulet::cost
