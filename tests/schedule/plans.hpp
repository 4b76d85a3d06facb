#pragma once
// The plans of all ranks of a world, from a generator of one rank's plan.
#include <vector>

#include "annulet/schedule/plan.hpp"

namespace annulet::schedule {

template <class Generator>
std::vector<Plan> plans_of(int world, Generator generate) {
  std::vector<Plan> plans;
  for (int rank = 0; rank < world; ++rank) plans.push_back(generate(rank));
  return plans;
}

inline Elements sent_by_all(const std::vector<Plan>& plans) {
  Elements total = 0;
  for (const Plan& plan : plans) total += sent_elements(plan);
  return total;
}

}  // namespace annulet::schedule
