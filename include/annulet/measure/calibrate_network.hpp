#pragma once
// A thorough look at the network, for a machine file: what `annulet calibrate` does. Over the transport that training
// uses, an engine runs patterns of known plans:
//   a pair of ranks of one node, and pairs of nodes, all nodes at once as in a collective: ping-pong of small messages
//   (latency), a stream one way, and streams both ways at once, up to messages of `largest` bytes;
//   the ring all-reduce of all ranks, in training's segments.
// Inside a node a pattern's time is that of its quickest round, since whatever else the machine does only adds. Between
// nodes it is that of the round in the middle, begun by all ranks together on cards that have been idle, as bench has
// it: a kernel takes its time for every message, and no round goes without.
// cost::fit_probes finds the link inside nodes from that pair (and the ring, where there is one node), then the one
// between nodes from the pairs of nodes and the ring. A stream one way is shown beside its prediction but not fitted: a
// ring sends and receives at once, and one way alone promises more than that reaches. The squared error of a ring
// counts fourfold: like any collective it has every rank send, receive and add in turn, while in a ping-pong one of two
// rests, which promises more where ranks share cores. (Residuals of other collectives on scripts/cluster.sh decided:
// four hosts on two cores at 1 Gb/s, worst row 18 % with 4, 25 to 40 % with 1.) gamma is timed apart
// (measure/calibrate.hpp).
#include <functional>
#include <string>
#include <vector>

#include "annulet/cost/probe_fit.hpp"
#include "annulet/measure/transport_factory.hpp"

namespace annulet::measure {

struct NetworkCalibrationOptions {
  std::vector<int> node;  // [rank]; empty: all on one node
  // Messages of up to this many bytes are sent eagerly; absent: unknown, one piece serves all sizes.
  std::optional<Bytes> eager_inside, eager_between;
  Elements segment = 1 << 16;  // of the ring, as schedule::RingShape
  int slots = 2;
  Bytes largest{1 << 20};  // message of a pair; smaller ones on a link too slow for it
  Bytes ring{8 << 20};     // largest vector of the ring
  Seconds share{0.25};     // of a pattern and size
  Seconds deadline{300};   // as EngineOptions
  // This rank's clock, as ClockOffset; asked before each pattern between nodes, since clocks of hosts drift apart.
  // Collective.
  std::function<Seconds()> ahead = [] { return Seconds(0); };
  std::function<void(const std::string& what)> progress = [](const std::string&) {};  // told on every rank
};

enum class Pattern { ping_pong, stream, both_ways, ring };
std::string_view to_text(Pattern pattern);

struct NetworkPoint {
  Pattern pattern = Pattern::ping_pong;
  cost::Scope scope = cost::Scope::inside;
  Bytes bytes{0};    // of a message; of the ring: the vector
  int messages = 1;  // round trips, messages of a stream each way; of the ring 1
  Seconds measured{0}, predicted{0};

  double residual() const { return measured / predicted - 1; }
  bool fitted() const { return pattern != Pattern::stream; }
  double weight() const { return pattern == Pattern::ring ? 4 : 1; }  // in the fit, of the squared error
};

struct NetworkCalibration {
  cost::Link inside, between;  // alike where there is one node
  std::vector<NetworkPoint> points;
  double median_residual = 0, worst_residual = 0;  // of |predicted / measured - 1|
  std::string negative;  // which coefficient of which link came out negative; empty if none did
};

// Collective over the ranks of the transport, while no other engine runs. Every rank gets the same result. Throws
// InputError for a world of one, which has no link.
NetworkCalibration calibrate_network(const TransportFactory& make_transport, const NetworkCalibrationOptions& options);

// What both ways at once reach of one way's bandwidth, at the largest messages that were measured in `scope`: 1 where
// the directions do not disturb each other, 1/2 where they share. Nothing where it was not measured.
std::optional<double> both_ways_share(const std::vector<NetworkPoint>& points, cost::Scope scope);

}  // namespace annulet::measure
