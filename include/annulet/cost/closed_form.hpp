#pragma once
// Closed forms of every collective in the alpha-beta model: for p ranks and a vector of M bytes its steps, its seconds
// (apart: latency, bandwidth, adding) and what each rank puts on the wire. L = ceil(log2 p), q = 2^floor(log2 p).
//   ring                all-reduce 2 (p-1) alpha + 2 (p-1)/p M beta (Patarasuk & Yuan 2009), each half of it a
//                       reduce-scatter or all-gather; broadcast and reduce: a chain, cut in p pieces that follow each
//                       other, (p-1) alpha + 2 (p-1)/p M beta
//   recursive_doubling  all-reduce log2 q (alpha + M beta); all-gather log2 p alpha + (p-1)/p M beta
//   recursive_halving   all-reduce 2 log2 q alpha + 2 (q-1)/q M beta: halving, then doubling (Rabenseifner 2004;
//                       Thakur, Rabenseifner & Gropp 2005); its first half a reduce-scatter
//   tree                binomial, not pipelined: reduce, then broadcast, L (alpha + M beta) each
//   direct              each rank sends its chunks straight to their owners: alpha + (p-1)/p M beta each half
// Where p is no power of two, doubling and halving fold 2 (p-q) ranks in pairs before and after: 2 (alpha + M beta).
// A message costs what its size does on a piecewise link; alpha stands with g. Adding: no byte of it hidden.
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "annulet/cost/machine.hpp"

namespace annulet::cost {

enum class CollectiveKind : std::uint8_t { all_reduce, reduce_scatter, all_gather, broadcast, reduce };
enum class Algorithm : std::uint8_t { ring, recursive_doubling, recursive_halving, tree, direct };

std::string_view to_text(CollectiveKind kind);
std::string_view to_text(Algorithm algorithm);

// In the order of the enumeration. Doubling and halving alone need a power of two, the all-reduce does not.
std::vector<Algorithm> algorithms_of(CollectiveKind kind, int ranks);

// `bytes` is M, the whole vector: for an all-gather what everybody has in the end.
struct CollectiveShape {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Algorithm algorithm = Algorithm::ring;
  Bytes bytes{0};
  int ranks = 1;
  Bytes element{1};  // chunks are cut between elements; M is a whole number of them
};

struct PredictedTime {
  int steps = 0;         // that wait for each other, each with one latency
  Seconds latency{0};    // alpha of each step and g of each message on the way
  Seconds bandwidth{0};  // bytes on the way
  Seconds reduction{0};  // adding them
  std::size_t link = 0;  // which of several links it is

  Seconds total() const { return latency + bandwidth + reduction; }
};

// What simulate() says of the plans, for chunks of equal size in one segment; at most: doubling with folded ranks and
// trees of ranks that are no power of two take up to a step less.
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
double least_wire_bytes(CollectiveKind kind, Bytes bytes, int ranks);

// All of it together: of the rings of schedule/ring.hpp and the all-reduce of schedule/recursive_doubling.hpp.
Seconds ring_reduce_scatter_time(Bytes bytes, int ranks, const Link& link);
Seconds ring_all_gather_time(Bytes bytes, int ranks, const Link& link);
Seconds ring_all_reduce_time(Bytes bytes, int ranks, const Link& link);
// Over nodes, ranks in host order: the longest way through 2 (p-1) sends, each after the one before it on the same port
// or after the arrival of what it passes on. With a hop inside a node of m ranks taking a, between nodes b, and ports
// busy for s at most: the larger of b + j (b + (m-1) a) + the rest of 2 p - 3 hops, j = floor((2 p - 3) / m), and
// b + (2 p - 3) s. So a latency between nodes hides as long as their ports have enough to send. On one link, or with
// one rank a node, as above.
Seconds ring_all_reduce_time(Bytes bytes, int ranks, const Network& network);
Seconds recursive_doubling_time(Bytes bytes, int ranks, const Link& link);

}  // namespace annulet::cost
