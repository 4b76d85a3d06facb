#pragma once
// The bucket plan: which consecutive parameters are reduced together, in the order in which backward finishes them
// (PyTorch DDP, Li et al. 2020). A bucket closes before the tensor that would take it over its cap; the first one has a
// smaller cap, so that communication starts early. A tensor is never split: one larger than the cap is a bucket alone.
#include <span>
#include <vector>

#include "annulet/schedule/chunks.hpp"

namespace annulet::schedule {

struct Bucket {
  Interval elements;         // of the flat gradient buffer
  std::size_t first_tensor;  // tensors [first_tensor, end_tensor) of the layout
  std::size_t end_tensor;
};

struct BucketCaps {
  Elements first;  // of the first bucket
  Elements rest;   // of all others
};

// `tensor_sizes` in layout order; tensors of size 0 belong to the bucket they stand in. No tensors, no buckets.
std::vector<Bucket> plan_buckets(std::span<const Elements> tensor_sizes, BucketCaps caps);

}  // namespace annulet::schedule
