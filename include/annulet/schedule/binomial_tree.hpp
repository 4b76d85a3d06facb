#pragma once
// Whole vectors along a binomial tree, not pipelined: in every round the ranks that hold the vector double (or, towards
// the root, halve). For any p, L = ceil(log2 p), M bytes, if a rank sends and receives one message at a time:
//   broadcast   L steps:  L (alpha + M beta);  (p-1) M over all ranks, up to L M of the root
//   reduce      L steps:  L (alpha + M beta);  (p-1) M over all ranks, M of every rank but the root
//   all-reduce  2 L steps: 2 L (alpha + M beta), a reduce to rank 0 and a broadcast from it; 2 (p-1) M over all ranks
// A reduce leaves partial sums in the data of the ranks on the way. Uses neither segment nor slots; scratch of up to
// 2 n.
#include "annulet/schedule/plan.hpp"
#include "annulet/schedule/plan_shape.hpp"

namespace annulet::schedule {

Plan binomial_tree_broadcast(const PlanShape& shape);
Plan binomial_tree_reduce(const PlanShape& shape);
Plan binomial_tree_all_reduce(const PlanShape& shape);  // root: rank 0, whatever the shape says

int binomial_tree_steps(int world);  // L: of a broadcast or a reduce; an all-reduce has twice as many

// Elements that the rank sends.
Elements binomial_tree_broadcast_sends(const PlanShape& shape);
Elements binomial_tree_reduce_sends(const PlanShape& shape);
Elements binomial_tree_all_reduce_sends(const PlanShape& shape);

}  // namespace annulet::schedule
