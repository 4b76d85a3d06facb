#pragma once
// Closed forms in the alpha-beta model of every algorithm of schedule/algorithms.hpp: for p ranks and a vector of M
// bytes its seconds (apart: latency, bandwidth, adding) and what each rank puts on the wire. L = ceil(log2 p), q =
// 2^floor(log2 p), d = floor(log2 p). Each is explained in the header of its algorithm; in one segment a chunk:
//   ring                        2 (p-1) alpha + 2 (p-1)/p M beta; half of it a reduce-scatter or an all-gather
//   recursive_doubling          log2 q (alpha + M beta); all-gather L alpha + c/p M beta, as recursive_halving
//   recursive_halving           L alpha + c/p M beta, c = sum of ceil(p / 2^i), i = 1 to L: p-1 for powers of two
//   recursive_halving_doubling  2 log2 q alpha + 2 (q-1)/q M beta
//   binomial_tree               L (alpha + M beta); all-reduce twice that
//   pipelined_tree              at most 2 d alpha + 3 (d+S-1) M/S beta in S segments: a bound, the simulation is exact
//   pipelined_chain             (p-1) alpha + (p-2+S) M/S beta in S segments
//   bruck                       L alpha + (p-1)/p M beta
//   direct                      alpha + (p-1)/p M beta; all-reduce twice that
// Where p is no power of two, all-reduces by doubling and halving fold in pairs before and after: 2 (alpha + M beta),
// for the doubling at most; the doubling all-gather sends twice from odd groups, also at most. A message costs what its
// size does on a piecewise link; alpha stands with g. Adding: no byte of it hidden.
#include <span>
#include <vector>

#include "annulet/cost/machine.hpp"
#include "annulet/schedule/algorithms.hpp"

namespace annulet::cost {

// `bytes` is M, the whole vector: for an all-gather what everybody has in the end.
struct CollectiveShape {
  schedule::Collective collective = schedule::Collective::all_reduce;
  schedule::Algorithm algorithm = schedule::Algorithm::ring;
  Bytes bytes{0};
  int ranks = 1;
  Bytes element{1};  // chunks are cut between elements; M is a whole number of them
  Bytes segment{0};  // of pipelined trees and chains; 0: M / p
};

struct PredictedTime {
  int steps = 0;         // that wait for each other, each with one latency
  Seconds latency{0};    // alpha of each step and g of each message on the way
  Seconds bandwidth{0};  // bytes on the way
  Seconds reduction{0};  // adding them
  std::size_t link = 0;  // which of several links it is

  Seconds total() const { return latency + bandwidth + reduction; }
};

// What simulate() says of the plans, for chunks of equal size in one segment, on links without bursts; at most where
// the head of the file says so. Throws ContractError where the collective does not have the algorithm.
PredictedTime predicted_time(const CollectiveShape& shape, const Link& link);

// Several links: a step waits for its slowest hop, so the one on which all steps take longest.
PredictedTime predicted_time(const CollectiveShape& shape, std::span<const Link> links);

// The links that hops of ranks in host order take: inside where all fit on one node of `ranks_per_node`, inside and
// between where they do not, between where a node has one rank. Unknown ranks per node: between, since nothing says
// that two ranks share a node. Every rank has the whole of its link, as a node with a card for each rank gives; where
// ranks share a card, that holds for the ring, which crosses it once, but not for algorithms in which all cross at
// once.
std::vector<Link> links_of(const Machine& machine, int ranks);

// Bytes that ranks put on the wire; they differ where an algorithm treats ranks differently or p does not divide M.
struct WireBytes {
  Bytes payload{0};  // the most that a rank originates
  Bytes least{0}, largest{0}, total{0};
  int ranks = 1;

  double mean() const { return total.as_double() / ranks; }
};
WireBytes wire_bytes(const CollectiveShape& shape);

// A tree as it is often charged: every rank with L sends down and up, 2 M in all (all-reduce).
WireBytes charged_tree_bytes(const CollectiveShape& shape);

// The least that the rank which sends most can send: all-reduce 2 (p-1)/p M, reduce-scatter and all-gather half of
// that (Patarasuk & Yuan 2009); broadcast and reduce M.
double least_wire_bytes(schedule::Collective collective, Bytes bytes, int ranks);

// All of it together, of the ring.
Seconds ring_all_reduce_time(Bytes bytes, int ranks, const Link& link);
// Over nodes, ranks in host order: the longest way through 2 (p-1) sends, each after the one before it on the same port
// or after the arrival of what it passes on. With a hop inside a node of m ranks taking a, between nodes b, and ports
// busy for s at most: the larger of b + j (b + (m-1) a) + the rest of 2 p - 3 hops, j = floor((2 p - 3) / m), and
// b + (2 p - 3) s. So a latency between nodes hides as long as their ports have enough to send. On one link, or with
// one rank a node, as above.
Seconds ring_all_reduce_time(Bytes bytes, int ranks, const Network& network);

// All of it together of any algorithm: the ring's all-reduce as above, others on the link that bounds it.
Seconds total_time(const CollectiveShape& shape, const Network& network);

}  // namespace annulet::cost
