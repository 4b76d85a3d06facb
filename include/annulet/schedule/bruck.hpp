#pragma once
// All-gather by Bruck's algorithm (Bruck et al. 1997), for any p: in round i every rank sends the chunks that it has,
// its own and those of the ranks after it, 2^i of them or what is missing, to rank r - 2^i. Chunks arrive where they
// belong (the original rotates them at the end), so that where they wrap around p they go as two messages.
//   ceil(log2 p) steps; (p-1)/p M bytes of a rank where p divides n, (p-1) M over all ranks, which is the least:
//   ceil(log2 p) alpha + (p-1)/p M beta
// Uses neither segment, slots nor root.
#include "annulet/schedule/plan.hpp"
#include "annulet/schedule/plan_shape.hpp"

namespace annulet::schedule {

Plan bruck_all_gather(const PlanShape& shape);

int bruck_steps(int world);
Elements bruck_all_gather_sends(const PlanShape& shape);  // of the rank: the chunks of each round

}  // namespace annulet::schedule
