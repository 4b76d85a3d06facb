#pragma once
// Recursive halving, recursive doubling of pieces, and both (Rabenseifner 2004; Thakur et al. 2005). A group of ranks
// splits into halves; each rank sends a partner in the other half what that half will own and adds what it gets to
// what its own half will own; then each half does the same. The all-gather is the mirror image. For p ranks, M bytes:
//   reduce-scatter  L = ceil(log2 p) steps; n - |chunk r| elements of rank r, (p-1) M over all ranks:
//                   L alpha + c/p M beta, c = sum of ceil(p / 2^i) for i = 1 to L; p-1 for powers of two
//   all-gather      L steps; (p-1) M over all ranks: the same time for powers of two, up to M beta more otherwise
//   all-reduce      2 log2 q steps, 2 more where p is no power of two; 2 (p-1) M over all ranks:
//                   2 log2 q alpha + 2 (q-1)/q M beta, and 2 (alpha + M beta) more where p is no power of two
// A group of odd size splits into k and k+1 ranks, the last of which has no partner: in a reduce-scatter it only sends
// and in an all-gather only receives, both with the first rank of the group, which in an all-gather sends twice
// (bruck.hpp avoids that). For the all-reduce q is the largest power of two <= p, and the first 2 (p-q) ranks fold in
// pairs before and unfold after, so that no group is odd. Every chunk is summed on one rank, so all ranks have the same
// bits. Scratch: n, in odd groups and folds up to twice as much. Uses neither segment, slots nor root.
#include "annulet/schedule/plan.hpp"
#include "annulet/schedule/plan_shape.hpp"

namespace annulet::schedule {

Plan recursive_halving_reduce_scatter(const PlanShape& shape);
Plan recursive_doubling_all_gather(const PlanShape& shape);
Plan recursive_halving_doubling_all_reduce(const PlanShape& shape);

int recursive_halving_steps(int world);           // of the reduce-scatter and of the all-gather
int recursive_halving_doubling_steps(int world);  // of the all-reduce

// Elements that the rank sends. All-gather: at every level what its half has, to one rank, to two or to none.
Elements recursive_halving_reduce_scatter_sends(const PlanShape& shape);
Elements recursive_doubling_all_gather_sends(const PlanShape& shape);
Elements recursive_halving_doubling_all_reduce_sends(const PlanShape& shape);

}  // namespace annulet::schedule
