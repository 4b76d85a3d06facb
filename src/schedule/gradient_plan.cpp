#include "annulet/schedule/gradient_plan.hpp"

#include <algorithm>

#include "annulet/schedule/reproducible.hpp"

namespace annulet::schedule {
namespace {

Elements at_least_one(Bytes bytes, Bytes element) { return std::max<Elements>(1, bytes.value() / element.value()); }

}  // namespace

std::vector<Bucket> gradient_buckets(std::span<const Elements> tensor_sizes, Bytes element,
                                     const SyncOptions& options) {
  return plan_buckets(tensor_sizes,
                      {at_least_one(options.first_bucket, element), at_least_one(options.bucket, element)});
}

Execution bucket_execution(Bytes bytes, const SyncOptions& options) {
  const ExecutionRange* range = range_of(options.executions, bytes);
  if (range == nullptr) return {Algorithm::ring, options.segment, options.slots};
  return {range->algorithm, range->segment.value_or(options.segment), options.slots};
}

Elements bucket_sends(int rank, int world, Elements elements, Bytes element, const SyncOptions& options) {
  if (options.micro_shards > 0) return sent_elements(bucket_plan(rank, world, elements, element, options));
  const Execution execution = bucket_execution(element * elements, options);
  return planned_sends(Collective::all_reduce, execution.algorithm,
                       plan_shape(execution, rank, world, elements, element));
}

Elements bucket_total(int world, Elements elements, Bytes element, const SyncOptions& options) {
  if (options.micro_shards > 0) {
    return reproducible_total(Collective::all_reduce, options.micro_shards, world, elements);
  }
  return planned_total(Collective::all_reduce, bucket_execution(element * elements, options).algorithm, elements,
                       world);
}

Plan bucket_plan(int rank, int world, Elements elements, Bytes element, const SyncOptions& options) {
  const Execution execution = bucket_execution(element * elements, options);
  const PlanShape shape = plan_shape(execution, rank, world, elements, element);
  if (options.micro_shards > 0) return reproducible_all_reduce({shape, options.micro_shards});
  return make_plan(Collective::all_reduce, execution.algorithm, shape);
}

}  // namespace annulet::schedule
