#pragma once
// Rounds: labels for people on the steps of a collective, "step k of the ring". They are read off the plans of all
// ranks, whatever the algorithm: a message travels in the round after the latest one that its send or its receive waits
// for, and a combine or a copy belongs to the latest round that it waits for. So messages of one round wait for nothing
// in it, and with chunks sent whole there are as many rounds as messages on the longest way. Segments that one rank
// sends to another follow each other, a round each, unless the same steps come before and after them. The engine knows
// no rounds: as barriers they would forbid pipelining.
#include <span>
#include <vector>

#include "annulet/schedule/plan.hpp"

namespace annulet::schedule {

struct Rounds {
  int count = 0;
  std::vector<std::vector<int>> of{};  // [rank, step]: 1 to count; 0: before any message
};

// A message: the send of one rank and the receive of another that meet, as numbers of their plans' steps.
struct Meeting {
  int from, to;
  StepId send, receive;
};

// The k-th send from a to b meets the k-th receive of b from a; in the order of the senders' plans.
// Throw ContractError unless `plans`, [rank], fit together.
std::vector<Meeting> meetings_of(std::span<const Plan> plans);
Rounds rounds_of(std::span<const Plan> plans);

// The steps of rounds `first` to `last` as a plan of their own; what they need from earlier ones has happened. Its data
// is that of the plan followed by the scratch, so that nothing is lost between one part and the next.
Plan part_of(const Plan& plan, std::span<const int> rounds, int first, int last);

}  // namespace annulet::schedule
