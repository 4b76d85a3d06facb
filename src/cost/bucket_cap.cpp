#include "annulet/cost/bucket_cap.hpp"

#include <algorithm>
#include <numeric>

#include "annulet/base/error.hpp"
#include "annulet/cost/choice.hpp"

namespace annulet::cost {
namespace {

constexpr Bytes kSmallestCap{64 << 10};
constexpr double kAsCheap = 1.01;
constexpr SecondsPerByte kAssumedMoving{1 / 5e9}, kAssumedAdding{1 / 10e9};
constexpr SecondsPerByte kAssumedNarrowing{1 / 5e9}, kAssumedChoosing{1 / 2e9}, kAssumedSpreading{1 / 5e9};
constexpr int kOptimizerMoves = 4;  // gradient and weight read, momentum read and written, in gradients' bytes

using Preferred = std::optional<std::vector<schedule::ExecutionRange>>;

CapPrediction predicted(StepInput& input, Bytes cap, Bytes first, const Preferred& preferred) {
  input.sync.bucket = cap, input.sync.first_bucket = std::min(first, cap);
  if (preferred && input.world > 1) {
    input.sync.executions =
        bucket_executions(input.tensors, input.element, input.world, input.sync, input.network, *preferred);
  }
  const StepPrediction step = predict_step(input);
  return {cap, step.buckets.size(), step.step};
}

}  // namespace

BucketCapChoice cheapest_bucket_cap(StepInput input, const Preferred& preferred) {
  const Bytes first = input.sync.first_bucket;
  input.sync.bucket = kSmallestCap, input.sync.first_bucket = std::min(first, kSmallestCap);
  input.closed_form = !can_simulate(input);  // one method for the whole curve: that of the most buckets
  const Bytes model = input.element * std::accumulate(input.tensors.begin(), input.tensors.end(), Elements{0});
  BucketCapChoice choice;
  for (Bytes cap = kSmallestCap;; cap = cap * 2) {
    const CapPrediction point = predicted(input, cap, first, preferred);
    const bool same =
        !choice.curve.empty() && choice.curve.back().buckets == point.buckets && choice.curve.back().step == point.step;
    if (same) choice.curve.pop_back();
    choice.curve.push_back(point);
    if (cap >= model) break;
  }
  const auto cheaper = [](const CapPrediction& a, const CapPrediction& b) { return a.step < b.step; };
  const Seconds cheapest = std::min_element(choice.curve.begin(), choice.curve.end(), cheaper)->step;
  for (const CapPrediction& point : choice.curve) {
    if (point.step <= kAsCheap * cheapest) choice.cap = point.cap;
  }
  return choice;
}

StepProfile estimated_profile(const std::vector<Elements>& tensors, Bytes element, Flops flops, FlopRate rate) {
  ANNULET_EXPECTS(rate.value() > 0, "something is computed");
  const Seconds computing(flops.value() / rate.value());
  const Elements all = std::accumulate(tensors.begin(), tensors.end(), Elements{0});
  StepProfile profile;
  profile.backward_begins = computing / 3;
  profile.backward_ends = computing;
  Elements done = 0;
  for (const Elements size : tensors) {
    done += size;
    const double share = all > 0 ? static_cast<double>(done) / static_cast<double>(all) : 1;
    profile.ready.push_back(profile.backward_begins + share * (computing - profile.backward_begins));
  }
  profile.moving = kAssumedMoving, profile.adding = kAssumedAdding;
  profile.narrowing = kAssumedNarrowing, profile.choosing = kAssumedChoosing, profile.spreading = kAssumedSpreading;
  profile.optimizer = kAssumedMoving * (element * (kOptimizerMoves * all));
  return profile;
}

}  // namespace annulet::cost
