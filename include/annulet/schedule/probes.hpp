#pragma once
// Traffic between two ranks that tells the parts of a link apart; the others have nothing to do. Times on rank `first`,
// for n bytes a message, k messages:
//   ping_pong  k round trips:                 2 k (alpha + g + n beta)
//   stream     k one after another, then an answer of one element: k (g + n beta) + alpha, and the answer's way
//   both_ways  the same in both directions at once, the second's started by a first short message: alpha + g and
//              alpha + k (g + n beta)
// A ping-pong only knows alpha + g; the streams tell them apart.
#include "annulet/schedule/plan.hpp"

namespace annulet::schedule {

struct PairShape {
  int rank = 0;
  int world = 2;
  int first = 0, second = 1;
  Elements elements = 1;  // of a message; at least 1
  int messages = 1;       // k; at least 1
};

Plan ping_pong(const PairShape& shape);
Plan stream(const PairShape& shape);
Plan both_ways(const PairShape& shape);

}  // namespace annulet::schedule
