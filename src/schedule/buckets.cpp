#include "annulet/schedule/buckets.hpp"

namespace annulet::schedule {

std::vector<Bucket> plan_buckets(std::span<const Elements> tensor_sizes, BucketCaps caps) {
  ANNULET_EXPECTS(caps.first > 0 && caps.rest > 0, "a bucket holds at least one element");
  std::vector<Bucket> buckets;
  Elements first = 0;
  for (std::size_t tensor = 0; tensor < tensor_sizes.size(); ++tensor) {
    const Elements size = tensor_sizes[tensor];
    const Elements cap = buckets.size() <= 1 ? caps.first : caps.rest;
    const bool opens =
        buckets.empty() || (buckets.back().elements.count > 0 && buckets.back().elements.count + size > cap);
    if (opens) buckets.push_back({{first, 0}, tensor, tensor});
    buckets.back().elements.count += size;
    buckets.back().end_tensor = tensor + 1;
    first += size;
  }
  return buckets;
}

}  // namespace annulet::schedule
