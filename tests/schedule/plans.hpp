#pragma once
// The plans of all ranks of a world, from a generator of one rank's plan, and what is counted in them.
#include <algorithm>
#include <map>
#include <utility>
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

// Messages on the longest way through the plans: how often one waits for another.
inline int longest_way(const std::vector<Plan>& plans) {
  std::vector<std::vector<int>> at(plans.size());           // [rank, step]: messages before it is done
  std::map<std::pair<int, int>, std::vector<int>> channel;  // from, to: those of each message
  std::map<std::pair<int, int>, std::size_t> received;
  int longest = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t r = 0; r < plans.size(); ++r) {
      const Plan& plan = plans[r];
      while (at[r].size() < plan.steps.size()) {  // in plan order, which no plan's waiting contradicts
        const Step& step = plan.steps[at[r].size()];
        int before = 0;
        for (const StepId id : plan.after(step)) before = std::max(before, at[r][static_cast<std::size_t>(id)]);
        if (step.action == Action::send) channel[{plan.rank, step.peer}].push_back(before);
        if (step.action == Action::receive) {
          const auto& sent = channel[{step.peer, plan.rank}];
          std::size_t& next = received[{step.peer, plan.rank}];
          if (next == sent.size()) break;
          before = std::max(before, sent[next++] + 1);
        }
        at[r].push_back(before);
        longest = std::max(longest, before);
        moved = true;
      }
    }
  }
  return longest;
}

}  // namespace annulet::schedule
