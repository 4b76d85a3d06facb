#pragma once
// The shard map of ZeRO: what one rank of a world owns of a model whose parameters lie in buckets. Rank r owns chunk r
// of every bucket, which is what a reduce-scatter leaves with it and an all-gather takes from it; over the ranks the
// shards cover each parameter once. Chunks may be empty: any number of parameters on any number of ranks.
#include <span>
#include <vector>

#include "annulet/schedule/buckets.hpp"

namespace annulet::schedule {

// [bucket] the elements of the flat buffer that `rank` owns.
std::vector<Interval> shard(std::span<const Bucket> buckets, int world, int rank);

Elements total_count(std::span<const Interval> intervals);

// One bucket for each layer. `layers` in layout order, counted up from 0 without a gap: the layer of each tensor.
std::vector<Bucket> layer_buckets(std::span<const Elements> tensor_sizes, std::span<const std::size_t> layers);

}  // namespace annulet::schedule
