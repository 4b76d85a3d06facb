#pragma once
// What bytes take of a core that computes meanwhile. Ranks run ring all-reduces by polling, with a little computing
// between two looks at their messages, as training's backward does; what the looks took together, less those that find
// nothing, and what the computing took more than it does in peace, less the adding, is the price of the bytes.
#include "annulet/cost/link.hpp"
#include "annulet/measure/transport_factory.hpp"

namespace annulet::measure {

struct MovingOptions {
  Bytes bytes{2 << 20};  // of a vector
  Elements segment = 1 << 16;
  int slots = 4;
  int rounds = 7;  // the median counts
  Seconds deadline{300};
};

// Seconds of this rank's core per byte sent or received, in [0, inf). Collective, while no engine runs; 0 for a world
// of one.
cost::SecondsPerByte moving_pace(const TransportFactory& make_transport, const MovingOptions& options = {});

}  // namespace annulet::measure
