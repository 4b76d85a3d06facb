#pragma once
// What is run for one bucket, whatever its elements are: a collective of so many elements of so many bytes under way.
//   gradients   none, bf16   all-reduce (ZeRO stage 0) or reduce-scatter (stages 1 to 3) of the bucket's elements
//               topk:D       all-gather of p pieces of K = sum of ceil(n / D) over the bucket's tensors,
//                            each value with its position: all are equally long, so that lengths need no exchange and
//                            the sparse all-gather (schedule/sparse_all_gather.hpp) is the ring's, (p-1) payload from
//                            each rank
//               micro-shards as none, by plans that sum in a fixed order (schedule/reproducible.hpp)
//   weights     all-gather of the bucket's elements (stages 1 to 3), never compressed: every replica computes with the
//               owner's bits
// The engine runs these, cost prices them, reports count them.
#include <span>
#include <vector>

#include "annulet/schedule/zero.hpp"

namespace annulet::schedule {

struct Exchange {
  Collective collective = Collective::all_reduce;
  Elements elements = 0;  // of the whole vector: all pieces of an all-gather
  Bytes element{4};       // of one of them under way

  Bytes bytes() const { return element * elements; }
};

// [bucket] `tensors`: the sizes of the layout's; `element`: bytes of a gradient in memory.
struct GradientShape {
  std::span<const Bucket> buckets;
  std::span<const Elements> tensors;
  Bytes element{4};
  int stage = 0;  // of ZeRO
};
std::vector<Exchange> gradient_exchanges(const GradientShape& shape, int world, const Compression& compression);
std::vector<Exchange> weight_exchanges(std::span<const Bucket> buckets, Bytes element);

// Elements that one rank sends of a bucket's tensors under top_k.
Elements sparse_count(const Bucket& bucket, std::span<const Elements> tensors, const Compression& compression);

// What a rank brings: the bucket, or its piece.
Bytes payload(const Exchange& exchange, int world);

// By which algorithm, in which segments.
Execution execution_of(const Exchange& exchange, const SyncOptions& options);

// The plan of one rank; bytes that it, and that all ranks, send.
Plan exchange_plan(const Exchange& exchange, int rank, int world, const SyncOptions& options);
Bytes exchange_sends(const Exchange& exchange, int rank, int world, const SyncOptions& options);
Bytes exchange_total(const Exchange& exchange, int world, const SyncOptions& options);

}  // namespace annulet::schedule
