#include "annulet/schedule/exchange.hpp"

#include "annulet/schedule/reproducible.hpp"

namespace annulet::schedule {
namespace {

// Whether it sums in the order of the tree of micro-shards.
bool is_ordered(const Exchange& exchange, const SyncOptions& options) {
  return options.micro_shards > 0 && exchange.collective != Collective::all_gather;
}

}  // namespace

Elements sparse_count(const Bucket& bucket, std::span<const Elements> tensors, const Compression& compression) {
  Elements count = 0;
  for (std::size_t t = bucket.first_tensor; t < bucket.end_tensor; ++t) {
    count += top_k_count(tensors[t], compression.one_in);
  }
  return count;
}

std::vector<Exchange> gradient_exchanges(const GradientShape& shape, int world, const Compression& compression) {
  const bool sparse = compression.kind == Compression::Kind::top_k;
  ANNULET_EXPECTS(!sparse || shape.stage == 0, "sparse gradients are gathered whole by every rank");
  const Bytes element = travelling_bytes(shape.element, compression);
  std::vector<Exchange> exchanges;
  for (const Bucket& bucket : shape.buckets) {
    if (sparse) {
      const Elements piece = sparse_count(bucket, shape.tensors, compression);
      exchanges.push_back({Collective::all_gather, world * piece, element});
    } else {
      exchanges.push_back({gradient_collective(shape.stage), bucket.elements.count, element});
    }
  }
  return exchanges;
}

std::vector<Exchange> weight_exchanges(std::span<const Bucket> buckets, Bytes element) {
  std::vector<Exchange> exchanges;
  for (const Bucket& bucket : buckets) {
    exchanges.push_back({Collective::all_gather, bucket.elements.count, element});
  }
  return exchanges;
}

Bytes payload(const Exchange& exchange, int world) {
  if (exchange.collective != Collective::all_gather) return exchange.bytes();
  return exchange.element * (exchange.elements / world);
}

Execution execution_of(const Exchange& exchange, const SyncOptions& options) {
  if (is_ordered(exchange, options)) return {Algorithm::direct, options.segment, options.slots};
  if (exchange.collective == Collective::all_reduce) return bucket_execution(exchange.bytes(), options);
  return {Algorithm::ring, options.segment, options.slots};
}

Plan exchange_plan(const Exchange& exchange, int rank, int world, const SyncOptions& options) {
  if (is_ordered(exchange, options)) {
    const PlanShape shape =
        plan_shape(execution_of(exchange, options), rank, world, exchange.elements, exchange.element);
    return reproducible_plan(exchange.collective, {shape, options.micro_shards});
  }
  return bucket_plan(exchange.collective, rank, world, exchange.elements, exchange.element, options);
}

Bytes exchange_sends(const Exchange& exchange, int rank, int world, const SyncOptions& options) {
  if (is_ordered(exchange, options)) {
    return exchange.element * sent_elements(exchange_plan(exchange, rank, world, options));
  }
  const Execution execution = execution_of(exchange, options);
  return exchange.element * planned_sends(exchange.collective, execution.algorithm,
                                          plan_shape(execution, rank, world, exchange.elements, exchange.element));
}

Bytes exchange_total(const Exchange& exchange, int world, const SyncOptions& options) {
  if (is_ordered(exchange, options)) {
    return exchange.element * reproducible_total(exchange.collective, options.micro_shards, world, exchange.elements);
  }
  return exchange.element *
         planned_total(exchange.collective, execution_of(exchange, options).algorithm, exchange.elements, world);
}

}  // namespace annulet::schedule
