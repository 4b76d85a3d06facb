#pragma once
// The link that explains measured ring all-reduces. For one segment per chunk the simulation is linear in the link:
//   t = 2 (p-1) (alpha + g) + 2 (p-1)/p M beta + (p-1)/p M gamma
// With more segments it is a longest path: still linear near any one link, with other coefficients (latency hides
// behind the port, adding behind both). So the fit starts with the linear form and then repeats it with the
// coefficients of the simulation at the last link (Gauss-Newton), since what is predicted later is simulate() of
// segmented plans. Least squares on *relative* error: a microsecond matters at 1 KiB, a millisecond at 8 MiB. alpha and
// g always come as a sum where messages do not queue, and gamma hides behind beta, so g and gamma are given and alpha
// and beta are sought.
#include <span>
#include <vector>

#include "annulet/cost/link.hpp"

namespace annulet::cost {

// A ring all-reduce of float elements, and what it took.
struct RingPoint {
  Bytes bytes;                 // M, the vector of one rank
  int ranks = 1;               // p
  Elements segment = 1 << 16;  // as schedule::RingShape
  int slots = 4;
  Seconds time{0};  // from the common start to the last rank's end
};

// What simulate() says the point takes on `link`. Plans of more than some ten thousand steps over all ranks are priced
// by the linear form instead, which is an upper bound: it does not hide latency behind the port.
Seconds ring_point_time(const RingPoint& point, const Link& link);

struct LinkFit {
  Link link;
  std::vector<Seconds> predicted;  // [point]
  double median_residual = 0;      // of |predicted / measured - 1|
  double worst_residual = 0;
  bool clamped = false;  // alpha or beta is 0: the best one was negative, or not determined
};

// alpha >= 0 and beta >= 0; gap, gamma and source are those of `known`.
// Throws ContractError without points, for a world of one, or where a time is not positive.
LinkFit fit_link(std::span<const RingPoint> points, const Link& known);

}  // namespace annulet::cost
