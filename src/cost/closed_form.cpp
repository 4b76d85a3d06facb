#include "annulet/cost/closed_form.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace annulet::cost {
namespace {

using schedule::Algorithm;
using schedule::Collective;

// What follows one after the other on the longest way through a collective: `messages` of `bytes` each through a port,
// and `steps` latencies.
struct Hops {
  double steps, messages, bytes;
};

struct Way {
  std::vector<Hops> hops;
  double added = 0;  // bytes
  double paced = 0;  // bytes whose sending hides behind their adding, or the other way round
};

int power_below(int ranks) { return static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks))); }
int log2_floor(int ranks) { return std::countr_zero(static_cast<unsigned>(power_below(ranks))); }
bool is_power(int ranks) { return power_below(ranks) == ranks; }
int log2_ceil(int ranks) { return log2_floor(ranks) + (is_power(ranks) ? 0 : 1); }

Way then(Way first, const Way& second) {
  first.hops.insert(first.hops.end(), second.hops.begin(), second.hops.end());
  return {std::move(first.hops), first.added + second.added, first.paced + second.paced};
}

Way without_adding(Way way) { return {std::move(way.hops)}; }

// p-1 steps with a chunk each.
Way ring_half(double bytes, int ranks) {
  const double steps = ranks - 1, chunk = bytes / ranks;
  return {{{steps, steps, chunk}}, steps * chunk};
}

Way direct_half(double bytes, int ranks) {
  const double others = ranks - 1, chunk = bytes / ranks;
  return {{{1, others, chunk}}, others * chunk};
}

// The larger half of a group's chunks, of the half's, ...; in odd groups the first rank gets two halves.
Way halving(double bytes, int ranks) {
  Way way;
  for (int group = ranks; group > 1; group = (group + 1) / 2) {
    const int half = group / 2;
    way.hops.push_back({1, 1, bytes * (group - half) / ranks});
    way.added += bytes * (group % 2 == 0 ? half : 2 * half) / ranks;
  }
  return way;
}

// The mirror image; the first rank of an odd group sends twice, at most the vector once more over all levels.
Way doubling(double bytes, int ranks) {
  Way way = without_adding(halving(bytes, ranks));
  const double levels = log2_ceil(ranks);
  if (!is_power(ranks)) way.hops.push_back({0, levels, bytes / levels});
  return way;
}

// In round i 2^i chunks or what is missing, as two messages where they wrap.
Way bruck_way(double bytes, int ranks) {
  Way way;
  for (int have = 1; have < ranks; have *= 2) {
    const int chunks = std::min(have, ranks - have), messages = chunks > 1 ? 2 : 1;
    way.hops.push_back({1, double(messages), bytes * chunks / ranks / messages});
  }
  return way;
}

Way whole_vectors(double bytes, double steps) { return {{{steps, steps, bytes}}, steps * bytes}; }

// The first of S segments takes p-1 hops, and S-1 others follow it through the last one.
Way chain(double bytes, int ranks, double segments) {
  const double steps = ranks - 1, segment = bytes / segments;
  return {{{steps, steps + segments - 1, segment}}, steps * segment, (segments - 1) * segment};
}

// A reduce, and a broadcast in which a rank sends every segment to both its children.
Way tree_in_segments(double bytes, int ranks, double segments) {
  const double deep = log2_floor(ranks), children = std::min(2, ranks - 1), segment = bytes / segments;
  const double messages = deep + segments - 1;
  return {{{deep, messages, segment}, {deep, children * messages, segment}}, children * messages * segment};
}

Way with_folding(Way way, double bytes, int ranks) {
  if (is_power(ranks)) return way;
  return then(std::move(way), {{{2, 2, bytes}}, bytes});
}

double segments_of(const CollectiveShape& shape) {
  if (shape.segment.value() == 0) return shape.ranks;
  return std::max(1.0, std::ceil(shape.bytes / shape.segment));
}

// Of a collective that adds; one that only moves goes the same way.
Way adding_way(const CollectiveShape& shape) {
  const double bytes = shape.bytes.as_double();
  const int p = shape.ranks, q = power_below(p);
  switch (shape.algorithm) {
    case Algorithm::ring:
      return ring_half(bytes, p);
    case Algorithm::recursive_doubling:
      if (shape.collective == Collective::all_gather) return doubling(bytes, p);
      return with_folding(whole_vectors(bytes, log2_floor(p)), bytes, p);
    case Algorithm::recursive_halving:
      return halving(bytes, p);
    case Algorithm::recursive_halving_doubling:
      return with_folding(then(halving(bytes, q), doubling(bytes, q)), bytes, p);
    case Algorithm::binomial_tree:
      return whole_vectors(bytes, log2_ceil(p));
    case Algorithm::pipelined_tree:
      return tree_in_segments(bytes, p, segments_of(shape));
    case Algorithm::pipelined_chain:
      return chain(bytes, p, segments_of(shape));
    case Algorithm::bruck:
      return bruck_way(bytes, p);
    case Algorithm::direct:
      return direct_half(bytes, p);
  }
  return {};
}

Way way_of(const CollectiveShape& shape) {
  if (shape.ranks == 1) return {};
  Way way = adding_way(shape);
  if (shape.collective == Collective::broadcast || shape.collective == Collective::all_gather) {
    return without_adding(std::move(way));
  }
  const bool of_halves = shape.algorithm == Algorithm::ring || shape.algorithm == Algorithm::direct ||
                         shape.algorithm == Algorithm::binomial_tree;
  if (shape.collective != Collective::all_reduce || !of_halves) return way;
  return then(way, without_adding(way));
}

Bytes payload_of(const CollectiveShape& shape) {
  if (shape.collective != Collective::all_gather) return shape.bytes;
  const std::int64_t elements = shape.bytes.value() / shape.element.value();
  return shape.element * ((elements + shape.ranks - 1) / shape.ranks);
}

void expect_known(const CollectiveShape& shape) {
  ANNULET_EXPECTS(shape.ranks >= 1 && shape.bytes >= Bytes(0) && shape.element >= Bytes(1), "a collective has ranks");
  ANNULET_EXPECTS(has_algorithm(shape.collective, shape.algorithm), "the collective has this algorithm");
}

}  // namespace

PredictedTime predicted_time(const CollectiveShape& shape, const Link& link) {
  expect_known(shape);
  const Way way = way_of(shape);
  PredictedTime time;
  time.steps = schedule::steps(shape.collective, shape.algorithm, shape.ranks);
  for (const Hops& hops : way.hops) {
    const Bytes message(static_cast<std::int64_t>(std::ceil(hops.bytes)));
    const bool eager = link.is_eager(message);
    const Seconds gap = eager ? link.eager->gap : link.gap;
    const SecondsPerByte beta = eager ? link.eager->beta : link.beta;
    time.latency += hops.steps * link.latency(message) + hops.messages * gap;
    time.bandwidth += Seconds(hops.messages * hops.bytes * beta.value());
  }
  time.reduction = Seconds(way.added * link.gamma.value());
  time.reduction += Seconds(way.paced * std::max(0.0, link.gamma.value() - link.beta.value()));
  return time;
}

PredictedTime predicted_time(const CollectiveShape& shape, std::span<const Link> links) {
  ANNULET_EXPECTS(!links.empty(), "ranks are connected");
  PredictedTime slowest = predicted_time(shape, links.front());
  for (std::size_t l = 1; l < links.size(); ++l) {
    PredictedTime time = predicted_time(shape, links[l]);
    time.link = l;
    if (time.total() > slowest.total()) slowest = time;
  }
  return slowest;
}

std::vector<Link> links_of(const Machine& machine, int ranks) {
  const int per_node = machine.device.ranks_per_node;
  if (per_node > 1 && ranks <= per_node) return {machine.inside};
  if (per_node > 1) return {machine.inside, machine.between};
  return {machine.between};
}

WireBytes wire_bytes(const CollectiveShape& shape) {
  expect_known(shape);
  ANNULET_EXPECTS(shape.bytes.value() % shape.element.value() == 0, "a vector has whole elements");
  const Elements elements = shape.bytes.value() / shape.element.value();
  WireBytes wire{payload_of(shape), {}, {}, {}, shape.ranks};
  for (int rank = 0; rank < shape.ranks; ++rank) {
    const Bytes sent = shape.element * planned_sends(shape.collective, shape.algorithm, {rank, shape.ranks, elements});
    wire.total += sent;
    wire.least = rank == 0 ? sent : std::min(wire.least, sent);
    wire.largest = std::max(wire.largest, sent);
  }
  return wire;
}

WireBytes charged_tree_bytes(const CollectiveShape& shape) {
  const Bytes sent = shape.ranks > 1 ? shape.bytes * 2 : Bytes(0);
  return {shape.bytes, sent, sent, sent * shape.ranks, shape.ranks};
}

double least_wire_bytes(Collective collective, Bytes bytes, int ranks) {
  if (ranks == 1) return 0;
  const double part = bytes.as_double() * (ranks - 1) / ranks;
  if (collective == Collective::all_reduce) return 2 * part;
  return collective == Collective::reduce_scatter || collective == Collective::all_gather ? part : bytes.as_double();
}

Seconds ring_all_reduce_time(Bytes bytes, int ranks, const Link& link) {
  return predicted_time({Collective::all_reduce, Algorithm::ring, bytes, ranks}, link).total();
}

Seconds ring_all_reduce_time(Bytes bytes, int ranks, const Network& network) {
  const int nodes = network.nodes();
  if (nodes == 1 || nodes >= ranks) return ring_all_reduce_time(bytes, ranks, network.ring_link());
  const Bytes chunk(static_cast<std::int64_t>(std::llround(bytes.as_double() / ranks)));
  const auto port = [&](const Link& link) { return link.port_time(chunk); };
  const auto hop = [&](const Link& link) { return link.port_time(chunk) + link.latency(chunk); };
  const Seconds inside = hop(network.inside), between = hop(network.between);
  const Seconds adding = std::max(network.inside.gamma, network.between.gamma) * chunk;
  const Seconds busiest = std::max(port(network.inside), port(network.between));
  const double per_node = static_cast<double>(ranks) / nodes, others = 2.0 * (ranks - 1) - 1;
  const double rounds = std::floor(others / per_node);
  const Seconds moving = rounds * (between + (per_node - 1) * inside) + (ranks - 1) * adding + between +
                         (others - rounds * per_node) * std::max(inside, busiest);
  const Seconds waiting = (ranks - 1) * std::max(busiest, adding) + (ranks - 2) * busiest + between + adding;
  return std::max(moving, waiting);
}

Seconds total_time(const CollectiveShape& shape, const Network& network) {
  const bool ring = shape.collective == Collective::all_reduce && shape.algorithm == Algorithm::ring;
  if (ring) return ring_all_reduce_time(shape.bytes, shape.ranks, network);
  return predicted_time(shape, network.ring_link()).total();
}

}  // namespace annulet::cost
