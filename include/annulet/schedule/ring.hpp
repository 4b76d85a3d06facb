#pragma once
// The ring (Patarasuk & Yuan 2009; drawn in the README). Rank r sends to r+1 only; chunk numbers are modulo p.
//   reduce-scatter, step k of p-1: rank r sends chunk r-k-1 and adds what comes to its chunk r-k-2
//   all-gather,     step k of p-1: rank r sends chunk r-k and keeps what comes as chunk r-k-1
//   all-reduce: the first, then the second, 2(p-1) steps
// After the reduce-scatter rank r owns the finished sum of chunk r. A chunk travels in segments: one is forwarded as
// soon as it is reduced, so that sending, receiving and adding overlap (pipelining); with segment >= n / p there is one
// message per step. A rank goes on from one step to the next, segment by segment, once its own send of the step has
// been taken: its right neighbour could not use anything earlier, and over shared memory what is sent early meets no
// posted receive, which made vectors of 32 to 256 KiB a quarter slower. Bytes of rank r for n elements: reduce-scatter
// n - |chunk r|, all-gather n - |chunk r+1|; over all ranks (p-1) n each, the least any algorithm can send.
#include "annulet/schedule/plan.hpp"
#include "annulet/schedule/plan_shape.hpp"

namespace annulet::schedule {

using RingShape = PlanShape;

Plan ring_reduce_scatter(const RingShape& shape);
Plan ring_all_gather(const RingShape& shape);
Plan ring_all_reduce(const RingShape& shape);

// Closed forms. Steps of a rank, each with one latency; elements that rank `rank` sends; the sum over ranks.
int ring_all_reduce_steps(int world);
Elements ring_reduce_scatter_sends(Elements elements, int world, int rank);
Elements ring_all_gather_sends(Elements elements, int world, int rank);
Elements ring_all_reduce_sends(Elements elements, int world, int rank);
Elements ring_all_reduce_total(Elements elements, int world);  // 2 (p-1) n

}  // namespace annulet::schedule
