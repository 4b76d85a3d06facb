#pragma once
// The same collective with its result elsewhere: a rank's contribution is read from `input`, which is laid out as data
// and stays as it is, and the result comes into data. It is copied chunk by chunk in the order in which the plan uses
// the chunks, and a step waits only for those that it works on, so that the first send does not wait for the whole.
// Costs one copy of the contribution; messages and sums are those of the plan, and so are the bits of the result.
#include "annulet/schedule/algorithms.hpp"

namespace annulet::schedule {

// What shape.rank holds before the collective: the vector; its chunk before an all-gather; nothing where a broadcast
// has its root elsewhere.
Interval contribution(Collective collective, const PlanShape& shape);

// `plan` works on data alone.
Plan out_of_place(const Plan& plan, Interval contribution);

}  // namespace annulet::schedule
