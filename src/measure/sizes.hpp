#pragma once
// Which sizes a calibration measures, decided from what it has measured so far: pure, so that all ranks decide alike.
#include <optional>
#include <span>
#include <vector>

#include "annulet/cost/fit.hpp"

namespace annulet::measure {

inline Elements floats(Bytes bytes) { return bytes.value() / static_cast<Elements>(sizeof(float)); }

constexpr int kFewestRounds = 2;  // of a size; the very first one may have to open connections

// All sizes that may be chosen: smallest, doubled and doubled, and largest; whole floats, at least one for every rank's
// chunk, and always at least two sizes (so a largest below that is exceeded).
std::vector<Bytes> size_ladder(Bytes smallest, Bytes largest, int ranks);

// The next rung up the ladder, so that `sizes` of them, in near-equal ratios, are spread over it; a lower one if
// kFewestRounds there would not fit into `left` of `budget`; nothing at the top, after `sizes`, or if no higher rung
// fits. Times are extrapolated as a straight line through the last two of `measured`, or in proportion to the bytes
// from one (an upper bound). The budget may be exceeded for a second size, and up to twofold while the largest takes
// about as long as the smallest: the fit could not tell beta from noise. `measured` holds at least the first rung.
std::optional<std::size_t> next_size(std::span<const Bytes> ladder, int sizes,
                                     std::span<const cost::RingPoint> measured, Seconds budget, Seconds left);

}  // namespace annulet::measure
