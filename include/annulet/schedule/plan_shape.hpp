#pragma once
// What one rank's plan of a collective is made from, whatever the algorithm; each says which fields it uses.
#include "annulet/base/units.hpp"

namespace annulet::schedule {

// How long a segment should be: over shared memory and fast links, where a message costs as much as some ten KiB, as
// long as the chunk, up to 512 KiB, of which caches hold several. Over a link with more latency as much as is under way
// during it, alpha / beta, so that the port stays busy: on an emulated link by itself, by a machine file where `auto`
// chooses. (Over shared memory, two and four ranks: all-reduces of 64 MiB took 15 to 25 % longer in segments
// of 4 MiB, those of 4 MiB took 10 to 35 % longer in segments of 64 KiB.)
struct PlanShape {
  int rank = 0;
  int world = 1;
  Elements elements = 0;
  Elements segment = 1 << 16;  // most elements in one message
  int slots = 4;               // received segments that may wait to be added; at least 1
  int root = 0;                // of a broadcast or a reduce
};

}  // namespace annulet::schedule
