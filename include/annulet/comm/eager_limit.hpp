#pragma once
// Up to which size MPI sends a message at once (eagerly) instead of asking the receiver first (rendezvous): read from
// the control variables by which Open MPI's transports are tuned (MPI_T; MPI 4.0, chapter 15), less the room that its
// header takes. Elsewhere Open MPI's defaults are assumed, and said to be.
#include <algorithm>
#include <string>

#include "annulet/base/units.hpp"

namespace annulet::comm {

// Over shared memory a message of up to this length is cut into eager ones, which costs less than asking: on two ranks
// an all-reduce of 8 KiB by recursive doubling takes 5.5 us instead of 7.1, on another machine 4.3 instead of 10. Of
// longer ones it depends on the machine: one of 64 KiB, by halving and doubling, took 29 us in pieces and 21 whole.
constexpr Bytes kEagerReach{8 << 10};

struct EagerLimit {
  Bytes bytes{0};         // payload of the largest message that is surely eager
  std::string transport;  // "shared memory", "TCP"
  std::string origin;     // "btl_vader_eager_limit = 4096" or "assumed"

  bool is_tcp() const { return transport == "TCP"; }

  // The longest of our messages that goes eagerly, whole or in pieces. Over TCP longer ones are cut as well, but their
  // pieces queue behind each other.
  Bytes reach() const { return is_tcp() ? bytes : std::max(bytes, kEagerReach); }
};

struct EagerLimits {
  EagerLimit inside, between;  // a node; nodes
};

// Open MPI's default inside a node.
EagerLimit assumed_shared_memory_limit();

// Needs no MPI_Init; the same on every rank unless they were started with different settings.
const EagerLimits& find_eager_limits();

}  // namespace annulet::comm
