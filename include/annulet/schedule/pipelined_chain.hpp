#pragma once
// Broadcast and reduce along a chain of all ranks in segments: from the root to root + 1, root + 2, ..., or back. Every
// rank sends the vector at most once, so that a long one takes hardly longer than between two ranks.
//   p-1 steps; (p-1) M bytes over all ranks, M of every rank but the last (of a reduce: but the root)
// With S segments of m bytes: (p-1) alpha + (p-2+S) m beta.
// A reduce leaves partial sums in the data of the ranks on the way. Uses segment, slots and root; a reduce has a
// scratch of slots segments.
#include "annulet/schedule/plan.hpp"
#include "annulet/schedule/plan_shape.hpp"

namespace annulet::schedule {

Plan pipelined_chain_broadcast(const PlanShape& shape);
Plan pipelined_chain_reduce(const PlanShape& shape);

int pipelined_chain_steps(int world);
Elements pipelined_chain_broadcast_sends(const PlanShape& shape);
Elements pipelined_chain_reduce_sends(const PlanShape& shape);

}  // namespace annulet::schedule
