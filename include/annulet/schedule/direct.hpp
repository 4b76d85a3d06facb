#pragma once
// Everyone to everyone, without forwarding: rank r reduces its own chunk from all others' in rank order, as one process
// adding the ranks' vectors one after another would, and hands the sum to each of them. For p ranks, M bytes:
//   reduce-scatter  1 step, p-1 messages: alpha + (p-1)/p M beta
//   all-gather      1 step, p-1 messages: alpha + (p-1)/p M beta
//   all-reduce      both:               2 alpha + 2 (p-1)/p M beta
// The bytes of the ring at the latency of one message; but p-1 messages meet at every receiver, and each costs its gap,
// so it is for few ranks. Round k goes to rank r+k and comes from rank r-k, so that no receiver is everyone's first.
// Chunks are cut into segments, each with its p-1 messages: what was copied into a slot is still in the cache when it
// is added, and its sum when it is handed out, as many segments later as there are slots. Scratch: at most
// slots (p-1) |segment|. Uses segment and slots, not root.
#include "annulet/schedule/plan.hpp"
#include "annulet/schedule/plan_shape.hpp"

namespace annulet::schedule {

Plan direct_reduce_scatter(const PlanShape& shape);
Plan direct_all_gather(const PlanShape& shape);
Plan direct_all_reduce(const PlanShape& shape);

// Elements that the rank sends: n - |chunk r|, (p-1) |chunk r|, and the sum of both.
Elements direct_reduce_scatter_sends(const PlanShape& shape);
Elements direct_all_gather_sends(const PlanShape& shape);
Elements direct_all_reduce_sends(const PlanShape& shape);

}  // namespace annulet::schedule
