#pragma once
// Event simulation: what the plans of all ranks take on a link, by the rules by which the engine runs them.
//   - a rank's port sends one message at a time, oldest operation first, each operation's sends in plan order;
//   - a message arrives alpha after it left, and is received once its receive is posted;
//   - a rank reduces one segment at a time; combining occupies the rank, not its port;
//   - at most `active` operations of a rank are in progress, in launch order.
// Not modelled: the engine's bound on messages in flight (32 of an operation), which only a very long link meets.
// Time is the only resource: nothing here depends on the machine that simulates. O(steps log steps).
#include <span>
#include <vector>

#include "annulet/cost/link.hpp"
#include "annulet/schedule/plan.hpp"

namespace annulet::cost {

// One collective: the plan of every rank, the bytes of an element, and when each rank launches it.
struct Collective {
  std::vector<const schedule::Plan*> plans;  // [rank]
  Bytes element{4};
  std::vector<Seconds> launched;  // [rank], any common origin
};

struct SimulationOptions {
  int active = 3;
};

// When each collective ends on each rank, [collective, rank], in the origin of `launched`. Every collective has the
// same number of ranks; a rank launches them in the order given (a later one that is launched earlier still queues
// behind). Throws ContractError if the plans do not fit together.
std::vector<std::vector<Seconds>> simulate(std::span<const Collective> collectives, const Link& link,
                                           const SimulationOptions& options = {});

}  // namespace annulet::cost
