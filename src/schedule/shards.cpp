#include "annulet/schedule/shards.hpp"

namespace annulet::schedule {

std::vector<Interval> shard(std::span<const Bucket> buckets, int world, int rank) {
  std::vector<Interval> owned;
  for (const Bucket& bucket : buckets) {
    const Interval part = chunk(bucket.elements.count, world, rank);
    owned.push_back({bucket.elements.first + part.first, part.count});
  }
  return owned;
}

Elements total_count(std::span<const Interval> intervals) {
  Elements total = 0;
  for (const Interval& interval : intervals) total += interval.count;
  return total;
}

std::vector<Bucket> layer_buckets(std::span<const Elements> tensor_sizes, std::span<const std::size_t> layers) {
  ANNULET_EXPECTS(tensor_sizes.size() == layers.size(), "every tensor has a layer");
  std::vector<Bucket> buckets;
  Elements first = 0;
  for (std::size_t t = 0; t < layers.size(); ++t) {
    if (layers[t] == buckets.size()) buckets.push_back({{first, 0}, t, t});
    ANNULET_EXPECTS(layers[t] + 1 == buckets.size(), "layers are counted up from 0 in layout order");
    buckets.back().elements.count += tensor_sizes[t], buckets.back().end_tensor = t + 1;
    first += tensor_sizes[t];
  }
  return buckets;
}

}  // namespace annulet::schedule
