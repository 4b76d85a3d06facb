#pragma once
// What it takes a core to move a byte that is in nobody's cache: what a rank pays to hand a message to the link, or to
// take one from it, where the link's bytes are copied (shared memory, sockets).
#include "annulet/cost/link.hpp"

namespace annulet::measure {

// Of this rank alone: large blocks to a small buffer and from there to others, a byte moved each time; the median pass.
cost::SecondsPerByte copy_pace(Seconds budget = Seconds(0.02));

}  // namespace annulet::measure
