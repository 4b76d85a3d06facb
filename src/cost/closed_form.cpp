#include "annulet/cost/closed_form.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "annulet/schedule/chunks.hpp"
#include "annulet/schedule/recursive_doubling.hpp"
#include "annulet/schedule/ring.hpp"

namespace annulet::cost {
namespace {

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

// The first chunk takes p-1 hops, and p-1 others follow it through the last one.
Way chain(double bytes, int ranks) {
  const double steps = ranks - 1, chunk = bytes / ranks;
  return {{{steps, 2 * steps, chunk}}, steps * chunk, steps * chunk};
}

Way direct_half(double bytes, int ranks) {
  const double others = ranks - 1, chunk = bytes / ranks;
  return {{{ranks > 1 ? 1.0 : 0.0, others, chunk}}, others * chunk};
}

// Half of the vector, a quarter, ...
Way halving(double bytes, int ranks) {
  Way way;
  for (int k = 0; k < log2_floor(ranks); ++k) {
    bytes /= 2;
    way.hops.push_back({1, 1, bytes});
    way.added += bytes;
  }
  return way;
}

Way whole_vectors(double bytes, double steps) { return {{{steps, steps, bytes}}, steps * bytes}; }

Way with_folding(Way way, double bytes, int ranks) {
  if (is_power(ranks)) return way;
  return then(std::move(way), {{{2, 2, bytes}}, bytes});
}

Way way_of(const CollectiveShape& shape);

Way all_reduce_way(const CollectiveShape& shape) {
  const double bytes = shape.bytes.as_double();
  const int p = shape.ranks, q = power_below(p);
  const auto half = [&](CollectiveKind kind) {
    CollectiveShape part = shape;
    part.kind = kind;
    return way_of(part);
  };
  switch (shape.algorithm) {
    case Algorithm::recursive_doubling:
      return with_folding(whole_vectors(bytes, log2_floor(p)), bytes, p);
    case Algorithm::recursive_halving:
      return with_folding(then(halving(bytes, q), without_adding(halving(bytes, q))), bytes, p);
    case Algorithm::tree:
      return then(half(CollectiveKind::reduce), half(CollectiveKind::broadcast));
    default:
      return then(half(CollectiveKind::reduce_scatter), half(CollectiveKind::all_gather));
  }
}

// Of a collective that adds; one that only moves goes the same way.
Way adding_way(const CollectiveShape& shape) {
  const double bytes = shape.bytes.as_double();
  const bool rooted = shape.kind == CollectiveKind::broadcast || shape.kind == CollectiveKind::reduce;
  switch (shape.algorithm) {
    case Algorithm::tree:
      return whole_vectors(bytes, log2_ceil(shape.ranks));
    case Algorithm::direct:
      return direct_half(bytes, shape.ranks);
    case Algorithm::ring:
      return rooted ? chain(bytes, shape.ranks) : ring_half(bytes, shape.ranks);
    default:
      return halving(bytes, shape.ranks);
  }
}

Way way_of(const CollectiveShape& shape) {
  if (shape.kind == CollectiveKind::all_reduce) return all_reduce_way(shape);
  const bool adds = shape.kind == CollectiveKind::reduce_scatter || shape.kind == CollectiveKind::reduce;
  return adds ? adding_way(shape) : without_adding(adding_way(shape));
}

void expect_known(const CollectiveShape& shape) {
  ANNULET_EXPECTS(shape.ranks >= 1 && shape.bytes >= Bytes(0) && shape.element >= Bytes(1), "a collective has ranks");
  const auto known = algorithms_of(shape.kind, shape.ranks);
  ANNULET_EXPECTS(std::ranges::find(known, shape.algorithm) != known.end(), "the collective has this algorithm");
}

}  // namespace

std::string_view to_text(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return "all-reduce";
    case CollectiveKind::reduce_scatter:
      return "reduce-scatter";
    case CollectiveKind::all_gather:
      return "all-gather";
    case CollectiveKind::broadcast:
      return "broadcast";
    case CollectiveKind::reduce:
      return "reduce";
  }
  return "";
}

std::string_view to_text(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::ring:
      return "ring";
    case Algorithm::recursive_doubling:
      return "recursive doubling";
    case Algorithm::recursive_halving:
      return "recursive halving";
    case Algorithm::tree:
      return "tree";
    case Algorithm::direct:
      return "direct";
  }
  return "";
}

std::vector<Algorithm> algorithms_of(CollectiveKind kind, int ranks) {
  using enum Algorithm;
  switch (kind) {
    case CollectiveKind::all_reduce:
      return {ring, recursive_doubling, recursive_halving, tree, direct};
    case CollectiveKind::reduce_scatter:
      return is_power(ranks) ? std::vector{ring, recursive_halving, direct} : std::vector{ring, direct};
    case CollectiveKind::all_gather:
      return is_power(ranks) ? std::vector{ring, recursive_doubling, direct} : std::vector{ring, direct};
    default:
      return {ring, tree};
  }
}

PredictedTime predicted_time(const CollectiveShape& shape, const Link& link) {
  expect_known(shape);
  const Way way = way_of(shape);
  PredictedTime time;
  for (const Hops& hops : way.hops) {
    const Bytes message(static_cast<std::int64_t>(std::ceil(hops.bytes)));
    const bool eager = link.is_eager(message);
    const Seconds gap = eager ? link.eager->gap : link.gap;
    const SecondsPerByte beta = eager ? link.eager->beta : link.beta;
    time.steps += static_cast<int>(hops.steps);
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

namespace {

// Elements that a rank sends. Ranks that fold are 0, 2, ... of the first 2 (p-q); the odd ones among them have the
// positions before all others (schedule/recursive_doubling.hpp).
class Sends {
 public:
  Sends(Algorithm algorithm, Elements elements, int ranks)
      : algorithm_(algorithm), n_(elements), p_(ranks), q_(power_below(ranks)) {}

  Elements of(CollectiveKind kind, int rank) const {
    switch (kind) {
      case CollectiveKind::all_reduce:
        return all_reduce(rank);
      case CollectiveKind::reduce_scatter:
        return n_ - schedule::chunk(n_, p_, rank).count;
      case CollectiveKind::all_gather:
        return all_gather(rank);
      case CollectiveKind::broadcast:
        return algorithm_ == Algorithm::tree ? children(rank) * n_ : (rank < p_ - 1 ? n_ : 0);
      case CollectiveKind::reduce:
        return rank == 0 ? 0 : n_;
    }
    return 0;
  }

 private:
  Elements all_reduce(int rank) const {
    if (algorithm_ == Algorithm::tree) return of(CollectiveKind::reduce, rank) + of(CollectiveKind::broadcast, rank);
    if (algorithm_ == Algorithm::ring || algorithm_ == Algorithm::direct) {
      return of(CollectiveKind::reduce_scatter, rank) + all_gather(rank);
    }
    const int folded = p_ - q_;
    const bool in_a_pair = rank < 2 * folded;
    if (in_a_pair && rank % 2 == 0) return n_;
    const int position = in_a_pair ? rank / 2 : rank - folded;
    const Elements own = algorithm_ == Algorithm::recursive_doubling ? log2_floor(p_) * n_ : halved(position);
    return own + (in_a_pair ? n_ : 0);
  }

  Elements all_gather(int rank) const {
    if (algorithm_ == Algorithm::ring) return schedule::ring_all_gather_sends(n_, p_, rank);
    if (algorithm_ == Algorithm::direct) return (p_ - 1) * schedule::chunk(n_, p_, rank).count;
    return doubled(rank);
  }

  Elements halved(int position) const { return n_ - schedule::chunk(n_, q_, position).count + doubled(position); }

  // Its chunk, then the two of its pair, then four, ...
  Elements doubled(int position) const {
    Elements sent = 0;
    for (int size = 1; size < q_; size *= 2) {
      const int first = position / size * size;
      sent += schedule::chunk(n_, q_, first + size - 1).end() - schedule::chunk(n_, q_, first).first;
    }
    return sent;
  }

  // In a binomial tree of root 0: rank + 2^k below its lowest bit.
  Elements children(int rank) const {
    Elements count = 0;
    for (std::int64_t step = 1; rank + step < p_ && (rank & step) == 0; step *= 2) ++count;
    return count;
  }

  Algorithm algorithm_;
  Elements n_;
  int p_, q_;
};

Bytes payload_of(const CollectiveShape& shape) {
  if (shape.kind != CollectiveKind::all_gather) return shape.bytes;
  const std::int64_t elements = shape.bytes.value() / shape.element.value();
  return shape.element * ((elements + shape.ranks - 1) / shape.ranks);
}

}  // namespace

WireBytes wire_bytes(const CollectiveShape& shape) {
  expect_known(shape);
  ANNULET_EXPECTS(shape.bytes.value() % shape.element.value() == 0, "a vector has whole elements");
  const Sends sends(shape.algorithm, shape.bytes.value() / shape.element.value(), shape.ranks);
  WireBytes wire{payload_of(shape), {}, {}, {}, shape.ranks};
  if (shape.ranks == 1) return wire;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    const Bytes sent = shape.element * sends.of(shape.kind, rank);
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

double least_wire_bytes(CollectiveKind kind, Bytes bytes, int ranks) {
  if (ranks == 1) return 0;
  const double part = bytes.as_double() * (ranks - 1) / ranks;
  if (kind == CollectiveKind::all_reduce) return 2 * part;
  return kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::all_gather ? part : bytes.as_double();
}

Seconds ring_reduce_scatter_time(Bytes bytes, int ranks, const Link& link) {
  return predicted_time({CollectiveKind::reduce_scatter, Algorithm::ring, bytes, ranks}, link).total();
}

Seconds ring_all_gather_time(Bytes bytes, int ranks, const Link& link) {
  return predicted_time({CollectiveKind::all_gather, Algorithm::ring, bytes, ranks}, link).total();
}

Seconds ring_all_reduce_time(Bytes bytes, int ranks, const Link& link) {
  return predicted_time({CollectiveKind::all_reduce, Algorithm::ring, bytes, ranks}, link).total();
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

Seconds recursive_doubling_time(Bytes bytes, int ranks, const Link& link) {
  return predicted_time({CollectiveKind::all_reduce, Algorithm::recursive_doubling, bytes, ranks}, link).total();
}

}  // namespace annulet::cost
