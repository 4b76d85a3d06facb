#include "annulet/measure/calibrate_network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "annulet/base/error.hpp"
#include "annulet/base/statistics.hpp"
#include "annulet/measure/calibrate.hpp"
#include "annulet/schedule/probes.hpp"
#include "annulet/schedule/ring.hpp"
#include "plan_probe.hpp"
#include "sizes.hpp"

namespace annulet::measure {
namespace {

using cost::Scope;

constexpr std::int64_t kSmallest = 64;  // bytes
constexpr int kRoundTrips = 2;
constexpr int kLongStream = 16, kShortStream = 4;  // messages; the short one where they are large
constexpr std::int64_t kLarge = 128 << 10;
constexpr std::int64_t kLatency = 16 << 10;  // bytes of the largest ping-pong where no eager limit is known
constexpr int kFewestTrips = 8, kMostTrips = 400;
constexpr Seconds kLongestRound{0.2};  // a size whose stream takes longer is the last of its pair; no ring takes longer
constexpr Seconds kIdle{0.002};        // before a round between nodes: a card that lets bursts pass is ready for one
constexpr std::array<std::string_view, 5> kNegative{"", "alpha inside a node", "beta inside a node",
                                                    "alpha between nodes", "beta between nodes"};
// Rings, as parts of the largest: close to each other where messages outgrow the eager limit.
constexpr std::array<std::int64_t, 9> kRingParts{8192, 1024, 256, 128, 64, 32, 16, 4, 1};
constexpr int kMostRingRanks = 96;  // simulating a ring costs p^2

// Sizes from kSmallest in steps of four, with one just within the eager limit and one just beyond.
std::vector<Bytes> sizes_of_messages(const std::optional<Bytes>& eager, Bytes largest) {
  std::set<std::int64_t> sizes;
  for (std::int64_t size = kSmallest; size <= largest.value(); size *= 4) sizes.insert(size);
  const std::int64_t limit = eager ? std::max<std::int64_t>(eager->value() / 4 * 4, 4) : largest.value();
  for (const std::int64_t size : {limit, 2 * limit}) {
    if (eager && size <= largest.value()) sizes.insert(size);
  }
  std::vector<Bytes> result;
  for (const std::int64_t size : sizes) result.emplace_back(size);
  return result;
}

// Pairs of ranks that exchange messages at the same time.
struct Pairs {
  Scope scope;
  std::vector<std::pair<int, int>> ranks;  // none of them twice

  const std::pair<int, int>& of(int rank) const {
    const auto has = [rank](const std::pair<int, int>& p) { return p.first == rank || p.second == rank; };
    const auto found = std::ranges::find_if(ranks, has);
    return found == ranks.end() ? ranks.front() : *found;
  }
};

// The lowest two ranks of the first node that has two.
Pairs inside_nodes(const std::vector<int>& node) {
  for (std::size_t a = 0; a < node.size(); ++a) {
    const auto b = std::find(node.begin() + static_cast<std::ptrdiff_t>(a) + 1, node.end(), node[a]);
    if (b != node.end()) return {Scope::inside, {{static_cast<int>(a), static_cast<int>(b - node.begin())}}};
  }
  return {Scope::inside, {}};
}

// The lowest ranks of two nodes, and of two others, and so on.
Pairs between_nodes(const std::vector<int>& node) {
  std::vector<int> lowest;
  for (std::size_t r = 0; r < node.size(); ++r) {
    const auto at = node.begin() + static_cast<std::ptrdiff_t>(r);
    if (std::find(node.begin(), at, node[r]) == at) lowest.push_back(static_cast<int>(r));
  }
  Pairs pairs{Scope::between, {}};
  for (std::size_t i = 0; i + 1 < lowest.size(); i += 2) pairs.ranks.emplace_back(lowest[i], lowest[i + 1]);
  return pairs;
}

// What can be measured: a plan declared in the probe, how all ranks' plans come about, and what it is called.
struct Candidate {
  NetworkPoint point;
  std::size_t plan = 0;
  std::vector<int> timed;  // ranks whose ends count, alike in the simulation; none: all
  std::function<schedule::Plan(int rank)> plan_of;
};

class Calibrator {
 public:
  Calibrator(std::unique_ptr<comm::Transport> transport, const NetworkCalibrationOptions& options)
      : options_(options),
        probe_(std::move(transport), std::max(floats(options.largest), floats(options.ring)), options.deadline) {
    if (options_.node.empty()) options_.node.assign(static_cast<std::size_t>(world()), 0);
    ANNULET_EXPECTS(static_cast<int>(options_.node.size()) == world(), "every rank is on a node");
    for (const Pairs& pairs : {inside_nodes(options_.node), between_nodes(options_.node)}) {
      if (!pairs.ranks.empty()) add_pairs(pairs);
    }
    add_rings();
  }

  NetworkCalibration run() {
    measure_all();
    options_.progress("adding");
    const double pace = reduction_pace(options_.segment, options_.slots).value();
    const cost::SecondsPerByte gamma(probe_.maximum(std::span(&pace, 1)).front());
    options_.progress("fitting");
    NetworkCalibration result = fit(gamma);
    share(result);
    return result;
  }

 private:
  int world() const { return probe_.world(); }
  bool has(Scope scope) const {
    return std::ranges::any_of(candidates_, [&](const Candidate& c) { return c.point.scope == scope; });
  }

  void add(const NetworkPoint& point, std::vector<int> timed, std::function<schedule::Plan(int)> plan_of) {
    candidates_.push_back({point, probe_.add(plan_of(probe_.rank())), std::move(timed), std::move(plan_of)});
  }

  void add_pairs(const Pairs& pairs) {
    std::vector<int> firsts;
    for (const auto& [first, second] : pairs.ranks) firsts.push_back(first);
    const auto& eager = pairs.scope == Scope::inside ? options_.eager_inside : options_.eager_between;
    for (const Bytes size : sizes_of_messages(eager, options_.largest)) {
      const int stream = size.value() < kLarge ? kLongStream : kShortStream;
      const auto shape = [=, world = world()](int rank, int messages) {
        const auto& [first, second] = pairs.of(rank);
        return schedule::PairShape{rank, world, first, second, floats(size), messages};
      };
      if (size <= (eager ? *eager * 4 : Bytes(kLatency))) {
        add({Pattern::ping_pong, pairs.scope, size, kRoundTrips, {}, {}}, firsts,
            [=](int r) { return schedule::ping_pong(shape(r, kRoundTrips)); });
      }
      add({Pattern::stream, pairs.scope, size, stream, {}, {}}, firsts,
          [=](int r) { return schedule::stream(shape(r, stream)); });
      add({Pattern::both_ways, pairs.scope, size, stream, {}, {}}, firsts,
          [=](int r) { return schedule::both_ways(shape(r, stream)); });
    }
  }

  void add_rings() {
    if (world() > kMostRingRanks) return;
    const Scope scope = has(Scope::between) ? Scope::between : Scope::inside;
    for (const std::int64_t part : kRingParts) {
      const Bytes size(std::max<std::int64_t>(options_.ring.value() / part, world() * std::int64_t{4}));
      const auto shape = [=, world = world(), segment = options_.segment, slots = options_.slots](int rank) {
        return schedule::RingShape{rank, world, floats(size), segment, slots};
      };
      add({Pattern::ring, scope, size, 1, {}, {}}, {}, [=](int r) { return schedule::ring_all_reduce(shape(r)); });
    }
  }

  // Sizes grow; once a stream is too slow, the larger ones of that pair, and rings that would take longer, are left
  // out. The same decisions on every rank, since times are agreed.
  void measure_all() {
    std::optional<Bytes> last_of_pair;
    ByteRate slowest(1e18);
    for (const Candidate& candidate : candidates_) {
      NetworkPoint point = candidate.point;
      if (point.pattern == Pattern::ping_pong && point.bytes.value() <= kSmallest) last_of_pair.reset();
      if (point.pattern == Pattern::ring ? 2 * (point.bytes / slowest) > kLongestRound
                                         : last_of_pair && point.bytes > *last_of_pair) {
        continue;
      }
      options_.progress(fmt::format("{} of {}, {}", to_text(point.pattern), annulet::to_text(point.bytes),
                                    point.scope == Scope::inside ? "inside a node" : "between nodes"));
      point.measured = time_of(candidate);
      if (point.pattern == Pattern::both_ways) {
        slowest = point.bytes * point.messages / point.measured;
        if (point.measured > kLongestRound) last_of_pair = point.bytes;
      }
      measured_.push_back(&candidate);
      points_.push_back(point);
    }
  }

  Seconds time_of(const Candidate& candidate) {
    Rounds rounds{kFewestTrips, kMostTrips, options_.share};
    const bool counts = candidate.timed.empty() || std::ranges::count(candidate.timed, probe_.rank()) > 0;
    if (candidate.point.scope == Scope::inside) return quickest(probe_, candidate.plan, rounds, counts);
    rounds.pause = kIdle;
    probe_.set_ahead(options_.ahead());
    return typical(probe_, candidate.plan, rounds, counts);
  }

  cost::Probe probe_of(std::size_t i) const {
    cost::Probe probe;
    for (int r = 0; r < world(); ++r) probe.plans.push_back(measured_[i]->plan_of(r));
    probe.timed = measured_[i]->timed.empty() ? -1 : measured_[i]->timed.front(), probe.time = points_[i].measured;
    probe.weight = points_[i].weight();
    return probe;
  }

  // Inside first: the ring between nodes has messages inside them too. Every rank fits, so that none waits long for
  // another; rank 0's result counts.
  NetworkCalibration fit(cost::SecondsPerByte gamma) {
    NetworkCalibration result;
    result.inside.gamma = result.between.gamma = gamma;
    cost::Network network{result.inside, result.between, options_.node};
    if (has(Scope::inside)) network.inside = fitted(Scope::inside, network, result.negative);
    if (has(Scope::between)) network.between = fitted(Scope::between, network, result.negative);
    if (!has(Scope::inside)) network.inside = network.between;
    if (!has(Scope::between)) network.between = network.inside;
    result.inside = network.inside, result.between = network.between;
    for (std::size_t i = 0; i < points_.size(); ++i) points_[i].predicted = cost::probe_time(probe_of(i), network);
    return result;
  }

  cost::Link fitted(Scope scope, const cost::Network& network, std::string& negative) {
    std::vector<cost::Probe> probes;
    for (std::size_t i = 0; i < points_.size(); ++i) {
      if (points_[i].scope != scope || !points_[i].fitted()) continue;
      probes.push_back(probe_of(i));
    }
    const auto& eager = scope == Scope::inside ? options_.eager_inside : options_.eager_between;
    const cost::ProbeFit fit = cost::fit_probes(probes, {network, scope, eager});
    if (!fit.negative.empty() && negative.empty()) {
      negative = fmt::format("{} {}", fit.negative, scope == Scope::inside ? "inside a node" : "between nodes");
    }
    return fit.link;
  }

  // Rank 0's fit on every rank.
  void share(NetworkCalibration& result) {
    share(result.inside), share(result.between);
    std::vector<double> residuals;
    for (std::size_t i = 0; i < points_.size(); ++i) {
      points_[i].predicted = Seconds(probe_.from_rank_0({points_[i].predicted.count()}).front());
      if (points_[i].fitted()) residuals.push_back(std::abs(points_[i].predicted / points_[i].measured - 1));
    }
    result.points = points_;
    result.worst_residual = *std::ranges::max_element(residuals);
    result.median_residual = *median(std::move(residuals));
    const auto name = std::ranges::find(kNegative, result.negative);
    const double at = probe_.from_rank_0({static_cast<double>(name - kNegative.begin())}).front();
    result.negative = kNegative[static_cast<std::size_t>(at)];
  }

  void share(cost::Link& link) {
    const cost::EagerLink eager = link.eager.value_or(cost::EagerLink{Bytes(-1), {}, {}, {}});
    const auto agreed = probe_.from_rank_0({link.alpha.count(), link.gap.count(), link.beta.value(),
                                            eager.limit.as_double(), eager.alpha.count(), eager.gap.count(),
                                            eager.beta.value(), link.burst.as_double(), link.burst_pace.value()});
    link.alpha = Seconds(agreed[0]), link.gap = Seconds(agreed[1]), link.beta = cost::SecondsPerByte(agreed[2]);
    link.burst = Bytes(static_cast<std::int64_t>(agreed[7])), link.burst_pace = cost::SecondsPerByte(agreed[8]);
    link.eager.reset();
    if (agreed[3] < 0) return;
    link.eager = {Bytes(static_cast<std::int64_t>(agreed[3])), Seconds(agreed[4]), Seconds(agreed[5]),
                  cost::SecondsPerByte(agreed[6])};
  }

  NetworkCalibrationOptions options_;
  PlanProbe probe_;
  std::vector<Candidate> candidates_;
  std::vector<const Candidate*> measured_;  // points_ runs beside it
  std::vector<NetworkPoint> points_;
};

}  // namespace

std::string_view to_text(Pattern pattern) {
  switch (pattern) {
    case Pattern::ping_pong:
      return "ping-pong";
    case Pattern::stream:
      return "one way";
    case Pattern::both_ways:
      return "both ways";
    case Pattern::ring:
      return "ring";
  }
  return "unknown";
}

NetworkCalibration calibrate_network(const TransportFactory& make_transport, const NetworkCalibrationOptions& options) {
  auto transport = make_transport();
  if (!transport || transport->world() == 1) {
    throw InputError({"one rank has no link to calibrate", "nothing is sent",
                      "Start two or more ranks, e.g. mpirun -n 2 annulet calibrate"});
  }
  return Calibrator(std::move(transport), options).run();
}

std::optional<double> both_ways_share(const std::vector<NetworkPoint>& points, cost::Scope scope) {
  std::optional<double> result;
  const NetworkPoint* one_way = nullptr;
  for (const NetworkPoint& point : points) {  // sizes grow, one way stands before both ways
    if (point.scope != scope) continue;
    if (point.pattern == Pattern::stream) one_way = &point;
    if (point.pattern == Pattern::both_ways && one_way != nullptr && one_way->bytes == point.bytes) {
      result = one_way->measured / point.measured;
    }
  }
  return result;
}

}  // namespace annulet::measure
