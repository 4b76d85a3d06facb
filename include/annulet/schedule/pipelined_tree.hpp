#pragma once
// All-reduce along a binary tree in segments: they are added on their way to rank 0 and come back as soon as they are
// finished. The logarithm of p in latency, and a bandwidth that does not depend on p; the ring sends a third less.
//   2 d steps, d = floor(log2 p); 2 (p-1) M bytes over all ranks, 3 M of a rank that has two children
// With S segments of m bytes, in a full tree (p = 2^(d+1) - 1): reduce d alpha + (d+S-1) m beta, broadcast d alpha +
// 2 (d+S-1) m beta; the all-reduce at most both, 2 d alpha + 3 (d+S-1) m beta, which is exact for S = 1.
// Uses segment and slots; scratch of slots segments.
#include "annulet/schedule/plan.hpp"
#include "annulet/schedule/plan_shape.hpp"

namespace annulet::schedule {

Plan pipelined_tree_all_reduce(const PlanShape& shape);  // root: rank 0, whatever the shape says

int pipelined_tree_steps(int world);  // 2 d
Elements pipelined_tree_all_reduce_sends(const PlanShape& shape);

}  // namespace annulet::schedule
