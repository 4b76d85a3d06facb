#pragma once
// Closed forms of the collectives' times in the alpha-beta model, for p ranks and a vector of M bytes:
//   ring reduce-scatter = all-gather = (p-1) alpha + (p-1)/p M beta
//   ring all-reduce                  = 2 (p-1) alpha + 2 (p-1)/p M beta        (Patarasuk & Yuan 2009)
//   recursive doubling all-reduce    = steps (alpha + M beta), at most a step less where q < p <= 3q/2, q =
//   2^floor(log2 p)
// Messages of one segment per chunk, no gap and no cost of adding: the simulation's answer there.
#include "annulet/cost/link.hpp"

namespace annulet::cost {

Seconds ring_reduce_scatter_time(Bytes bytes, int ranks, const Link& link);
Seconds ring_all_gather_time(Bytes bytes, int ranks, const Link& link);
Seconds ring_all_reduce_time(Bytes bytes, int ranks, const Link& link);
Seconds recursive_doubling_time(Bytes bytes, int ranks, const Link& link);

}  // namespace annulet::cost
