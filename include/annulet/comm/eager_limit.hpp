#pragma once
// Up to which size MPI sends a message at once (eagerly) instead of asking the receiver first (rendezvous): read from
// the control variables by which Open MPI's transports are tuned (MPI_T; MPI 4.0, chapter 15), less the room that its
// header takes. Elsewhere Open MPI's defaults are assumed, and said to be.
#include <string>

#include "annulet/base/units.hpp"

namespace annulet::comm {

struct EagerLimit {
  Bytes bytes{0};         // payload of the largest message that is surely eager
  std::string transport;  // "shared memory", "TCP"
  std::string origin;     // "btl_vader_eager_limit = 4096" or "assumed"
};

struct EagerLimits {
  EagerLimit inside, between;  // a node; nodes
};

// Needs no MPI_Init; the same on every rank unless they were started with different settings.
const EagerLimits& find_eager_limits();

}  // namespace annulet::comm
