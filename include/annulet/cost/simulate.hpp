#pragma once
// Event simulation: what the plans of all ranks take on a network, by the rules by which the engine runs them.
//   - a send is posted as soon as it may, each operation's sends in plan order, at most `window` of an operation at
//   once;
//   - a rank's own port sends one message at a time, first posted, first sent; a card, which a node's ranks share,
//   serves its connections in turn, 16 KiB or a sixteenth of a message at a time, and may let a burst pass (link.hpp);
//   - a message arrives alpha after it left, between nodes not before the cores at both its ends have handled it, which
//   takes them `moving` a byte, at most beta / 2; it is received once its receive is posted;
//   - a rank reduces one segment at a time; combining occupies the rank, not its port (but where core_is_port);
//   - at most `active` operations of a rank are in progress, in launch order.
// Time is the only resource: nothing here depends on the machine that simulates. O(steps log steps).
#include <span>
#include <vector>

#include "annulet/cost/network.hpp"
#include "annulet/schedule/plan.hpp"

namespace annulet::cost {

// One collective: the plan of every rank, the bytes of an element, and when each rank launches it.
struct LaunchedCollective {
  std::vector<const schedule::Plan*> plans;  // [rank]
  Bytes element{4};
  std::vector<Seconds> launched;  // [rank], any common origin
  SecondsPerByte handling{};      // what its sender, and its receiver, do to each byte besides
};

// Ranks that compute look at their messages only now and then, and nothing in MPI moves unless somebody looks: neither
// a message that is due leaves its sender, nor does one that has arrived reach its receiver.
struct Attention {
  struct Interval {
    Seconds begin, end;
  };
  static constexpr Seconds kNever = Seconds::max();

  Seconds period{0};             // between looks of a rank that computes, a launch being one as well
  std::vector<Interval> busy{};  // when ranks compute, ascending; in between, or where two meet, they look
};

struct SimulationOptions {
  int active = 3;   // as collectives::EngineOptions
  int window = 32;  // as collectives::Operation
  Attention attention{};
};

// When each collective ends on each rank, [collective, rank], in the origin of `launched`. Every collective has the
// same number of ranks; a rank launches them in the order given (a later one that is launched earlier still queues
// behind). Throws ContractError if the plans do not fit together.
std::vector<std::vector<Seconds>> simulate(std::span<const LaunchedCollective> collectives, const Network& network,
                                           const SimulationOptions& options = {});

}  // namespace annulet::cost
