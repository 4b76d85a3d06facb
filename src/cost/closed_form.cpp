#include "annulet/cost/closed_form.hpp"

#include "annulet/schedule/recursive_doubling.hpp"

namespace annulet::cost {

Seconds ring_reduce_scatter_time(Bytes bytes, int ranks, const Link& link) {
  const double steps = ranks - 1;
  return steps * link.alpha + (steps / ranks) * (link.beta * bytes);
}

Seconds ring_all_gather_time(Bytes bytes, int ranks, const Link& link) {
  return ring_reduce_scatter_time(bytes, ranks, link);
}

Seconds ring_all_reduce_time(Bytes bytes, int ranks, const Link& link) {
  return ring_reduce_scatter_time(bytes, ranks, link) + ring_all_gather_time(bytes, ranks, link);
}

Seconds recursive_doubling_time(Bytes bytes, int ranks, const Link& link) {
  return schedule::recursive_doubling_steps(ranks) * (link.alpha + link.beta * bytes);
}

}  // namespace annulet::cost
