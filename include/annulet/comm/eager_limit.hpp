#pragma once
// Up to which size MPI sends a message at once (eagerly) instead of asking the receiver first (rendezvous): read from
// the control variables by which Open MPI's transports are tuned (MPI_T; MPI 4.0, chapter 15), less the room that its
// header takes. Elsewhere Open MPI's defaults are assumed, and said to be.
#include <cstdint>
#include <string>

#include "annulet/base/units.hpp"

namespace annulet::comm {

// A message of a few eager ones' length is cut into such, which costs less than asking: over shared memory on two ranks
// 8 KiB take 4.3 us instead of 10, 32 KiB 10.7 instead of 15, 64 KiB about the same.
constexpr std::int64_t kEagerPieces = 9;  // with Open MPI's 4 KiB up to 32 KiB

struct EagerLimit {
  Bytes bytes{0};         // payload of the largest message that is surely eager
  std::string transport;  // "shared memory", "TCP"
  std::string origin;     // "btl_vader_eager_limit = 4096" or "assumed"

  // The longest of our messages that goes eagerly, in pieces. Over TCP all do, but longer ones not at once.
  Bytes reach() const { return transport == "TCP" ? bytes : kEagerPieces * bytes; }
};

struct EagerLimits {
  EagerLimit inside, between;  // a node; nodes
};

// Open MPI's default inside a node.
EagerLimit assumed_shared_memory_limit();

// Needs no MPI_Init; the same on every rank unless they were started with different settings.
const EagerLimits& find_eager_limits();

}  // namespace annulet::comm
