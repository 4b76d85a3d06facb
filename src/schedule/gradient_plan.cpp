#include "annulet/schedule/gradient_plan.hpp"

#include <algorithm>

#include "annulet/schedule/ring.hpp"

namespace annulet::schedule {
namespace {

Elements at_least_one(Bytes bytes, Bytes element) { return std::max<Elements>(1, bytes.value() / element.value()); }

}  // namespace

std::vector<Bucket> gradient_buckets(std::span<const Elements> tensor_sizes, Bytes element,
                                     const SyncOptions& options) {
  return plan_buckets(tensor_sizes,
                      {at_least_one(options.first_bucket, element), at_least_one(options.bucket, element)});
}

Plan bucket_plan(int rank, int world, Elements elements, Bytes element, const SyncOptions& options) {
  return ring_all_reduce({rank, world, elements, at_least_one(options.segment, element), options.slots});
}

}  // namespace annulet::schedule
