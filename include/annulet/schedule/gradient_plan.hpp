#pragma once
// How the gradients of a step travel: options in bytes, the buckets that they make of a layout, and the plan by which
// one rank runs a bucket's all-reduce. The overlap scheduler declares these plans and cost simulates the same ones, so
// that what is predicted is what is run.
#include <span>
#include <vector>

#include "annulet/schedule/buckets.hpp"
#include "annulet/schedule/compression.hpp"
#include "annulet/schedule/execution.hpp"

namespace annulet::schedule {

struct SyncOptions {
  Bytes bucket{4 << 20};        // cap of a bucket
  Bytes first_bucket{1 << 20};  // cap of the first
  Bytes segment{256 << 10};     // most bytes in one message
  int slots = 2;                // received segments that may wait to be added
  // Which algorithm runs buckets of so many bytes under way; sizes that are in no range: the ring.
  std::vector<ExecutionRange> executions{};
  Compression compression{};
  // S of a reproducible run, whose sums have an order, and plans, of their own (schedule/reproducible.hpp); 0: not one.
  int micro_shards = 0;
};

// `tensor_sizes` in layout order, `element` bytes each; caps below one element hold one element.
std::vector<Bucket> gradient_buckets(std::span<const Elements> tensor_sizes, Bytes element, const SyncOptions& options);

// How a bucket of so many bytes is all-reduced.
Execution bucket_execution(Bytes bytes, const SyncOptions& options);

// The plan of a bucket of `elements` on one rank; the elements that the rank, and all ranks, send.
Elements bucket_sends(int rank, int world, Elements elements, Bytes element, const SyncOptions& options);
Elements bucket_total(int world, Elements elements, Bytes element, const SyncOptions& options);
Plan bucket_plan(int rank, int world, Elements elements, Bytes element, const SyncOptions& options);

}  // namespace annulet::schedule
