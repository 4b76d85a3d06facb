#pragma once
// The bucket cap that makes a step cheapest, by predict_step over caps from 64 KiB to the whole model in factors of
// two. Deterministic: it depends on the inputs alone, which come from files or from the constants below, never from a
// measurement at start-up, so that the same run sums in the same order tomorrow.
#include <string>
#include <vector>

#include "annulet/cost/step.hpp"

namespace annulet::cost {

struct CapPrediction {
  Bytes cap{0};
  std::size_t buckets = 0;
  Seconds step{0};
};

struct BucketCapChoice {
  Bytes cap{0};
  std::string basis;                 // what the predictions stand on, filled in by the caller
  std::vector<CapPrediction> curve;  // caps that make different buckets, ascending
};

// The caps in `input.sync` are replaced: the first bucket's becomes the smaller of itself and the cap. Among caps
// within 1 % of the cheapest step the largest one: fewer messages, whose own cost no model knows well. With `preferred`
// every cap's buckets are run by their cheapest algorithms, but for the sizes that it holds.
BucketCapChoice cheapest_bucket_cap(StepInput input,
                                    const std::optional<std::vector<schedule::ExecutionRange>>& preferred = {});

// A step of `flops` operations (forward and backward of one rank) at `rate` on one core, without a profile: backward is
// two thirds, and each tensor's share of it is that of its elements; an optimiser that moves each gradient and weight a
// few times.
StepProfile estimated_profile(const std::vector<Elements>& tensors, Bytes element, Flops flops, FlopRate rate);

// Where no machine file says otherwise: what products reach on a core of some years ago.
constexpr FlopRate kAssumedCompute{50e9};

}  // namespace annulet::cost
