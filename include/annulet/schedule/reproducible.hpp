#pragma once
// Sums in the fixed tree of micro-shards (schedule/micro_shards.hpp). Rank r starts with the k_r pieces of its
// micro-shards, each a vector of n elements, one after the other in its data; what the tree adds up of them ends in the
// first n. Everyone sends its pieces of chunk c straight to rank c, which adds them in the order of the tree, whatever
// comes first; an all-reduce then hands the finished chunk to everybody. With K = sum of k_r, M bytes a piece:
//   reduce-scatter  1 step,  sum over c of (K - k_c) |chunk c|: (p-1) M where each rank owns one piece (S / p a power
//                            of two, say), else at most 2 (p-1) M or so
//   all-reduce      2 steps, (p-1) M more: 1 to 1.5 times the default's bytes
// Chunks are sent in segments, round by round as in schedule/direct.hpp. Scratch: (K - k_r) |chunk r|.
#include "annulet/schedule/algorithms.hpp"

namespace annulet::schedule {

struct ReproducibleShape {
  PlanShape shape;  // elements: of one piece; slots and root are not used
  int micro_shards = 1;
};

Plan reproducible_reduce_scatter(const ReproducibleShape& shape);
Plan reproducible_all_reduce(const ReproducibleShape& shape);

// One of the two; and what all ranks send in it.
Plan reproducible_plan(Collective collective, const ReproducibleShape& shape);
Elements reproducible_total(Collective collective, int micro_shards, int world, Elements elements);

}  // namespace annulet::schedule
