#include "annulet/cost/closed_form.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <numeric>

#include "annulet/cost/closed_form_text.hpp"
#include "annulet/cost/crossover.hpp"
#include "annulet/cost/simulate.hpp"
#include "annulet/schedule/algorithms.hpp"
#include "annulet/schedule/recursive_doubling.hpp"
#include "schedule/plans.hpp"

namespace annulet::cost {
namespace {

using schedule::Algorithm;
using schedule::Plan;
using enum schedule::Collective;
using enum schedule::Algorithm;
using Kind = schedule::Collective;

constexpr Bytes kFloat{4};

// With a gap, a cost of adding and messages that are eager up to 200 bytes.
Link rich_link() {
  Link link{Seconds(1e-3), Seconds(3e-4), SecondsPerByte(1e-6), SecondsPerByte(2e-7), "test"};
  link.eager = {Bytes(200), Seconds(1e-4), Seconds(1e-5), SecondsPerByte(2e-6)};
  return link;
}

Link plain_link() { return {Seconds(20e-6), Seconds(0), SecondsPerByte(1 / 1.25e9), SecondsPerByte(0), "test"}; }

Link gapped_link() { return {Seconds(1e-3), Seconds(3e-4), SecondsPerByte(1e-6), SecondsPerByte(2e-7), "test"}; }

std::vector<Plan> plans_of(const CollectiveShape& shape) {
  const Elements elements = shape.bytes.value() / shape.element.value();
  const Elements segment = shape.segment.value() > 0 ? shape.segment.value() / shape.element.value() : elements + 1;
  return schedule::plans_of(shape.ranks, [&](int rank) {
    return make_plan(shape.collective, shape.algorithm, {rank, shape.ranks, elements, segment, 4});
  });
}

double simulated(const CollectiveShape& shape, const Network& network) {
  const auto plans = plans_of(shape);
  LaunchedCollective collective{{}, shape.element, std::vector<Seconds>(plans.size())};
  for (const Plan& plan : plans) collective.plans.push_back(&plan);
  const auto ends = simulate(std::span(&collective, 1), network);
  return std::ranges::max(ends[0]).count();
}

CollectiveShape floats(Kind kind, Algorithm algorithm, Elements elements, int ranks) {
  return {kind, algorithm, kFloat * elements, ranks, kFloat};
}

double predicted(const CollectiveShape& shape, const Link& link) { return predicted_time(shape, link).total().count(); }

TEST(ClosedForm, OfRingsIsWhatTheSimulationSays) {
  for (const Link& link : {plain_link(), rich_link()}) {
    for (const Kind kind : {all_reduce, reduce_scatter, all_gather}) {
      for (int p = 1; p <= 17; ++p) {
        for (const Elements chunk : {0, 1, 50, 51, 10'000}) {
          const auto shape = floats(kind, ring, chunk * p, p);
          const double expected = chunk == 0 ? 0 : predicted(shape, link);
          EXPECT_NEAR(simulated(shape, link), expected, 1e-9 * expected) << to_text(kind) << p << ' ' << chunk;
        }
      }
    }
  }
}

// No chunk is longer than n / p and one element, nor shorter than n / p less one.
TEST(ClosedForm, OfRingsBoundsUnevenChunks) {
  const Link link = plain_link();
  for (int p = 2; p <= 17; ++p) {
    for (const Elements elements : {p + 1, 1000 * p - 1, 12'345}) {
      const double simulation = simulated(floats(all_reduce, ring, elements, p), link);
      EXPECT_LE(simulation, predicted(floats(all_reduce, ring, (elements / p + 1) * p, p), link) * (1 + 1e-9)) << p;
      EXPECT_GE(simulation, predicted(floats(all_reduce, ring, elements / p * p, p), link) * (1 - 1e-9)) << p;
    }
  }
}

// Whichever decides: latencies of small chunks, the ports between nodes of large ones, and what is neither.
TEST(ClosedForm, OfARingOverNodesIsWhatTheSimulationSays) {
  Link fast = plain_link();
  fast.alpha = Seconds(5e-6), fast.beta = SecondsPerByte(1 / 20e9);
  for (const int per_node : {1, 2, 3, 4, 8}) {
    for (int nodes = 1; nodes * per_node <= 24; ++nodes) {
      const int p = nodes * per_node;
      std::vector<int> node;
      for (int r = 0; r < p; ++r) node.push_back(r / per_node);
      const Network network(fast, plain_link(), node);
      for (const Elements chunk : {1, 500, 2'000, 5'000, 10'000, 20'000, 100'000}) {
        const double simulation = simulated(floats(all_reduce, ring, chunk * p, p), network);
        const double form = ring_all_reduce_time(kFloat * (chunk * p), p, network).count();
        EXPECT_NEAR(form, simulation, 0.03 * simulation) << per_node << ' ' << nodes << ' ' << chunk;
      }
    }
  }
}

TEST(ClosedForm, OfRecursiveDoublingIsWhatTheSimulationSays) {
  for (const Link& link : {plain_link(), rich_link()}) {
    for (int p = 1; p <= 17; ++p) {
      const int q = static_cast<int>(std::bit_floor(static_cast<unsigned>(p)));
      for (const Elements elements : {1, 50, 51, 10'000}) {
        const auto shape = floats(all_reduce, recursive_doubling, elements, p);
        const double expected = predicted(shape, link), simulation = simulated(shape, link);
        if (p == q || 2 * p > 3 * q) {
          EXPECT_NEAR(simulation, expected, 1e-9 * expected) << p << ' ' << elements;
        } else {  // at most a step less, where few ranks fold
          const double step = expected / schedule::recursive_doubling_steps(p);
          EXPECT_LE(simulation, expected * (1 + 1e-9)) << p << ' ' << elements;
          EXPECT_GE(simulation, expected - step * (1 + 1e-9)) << p << ' ' << elements;
        }
      }
    }
  }
}

// Of vectors of whole chunks, in one segment or, where that matters, p of them. Folded ranks of doubling, and ranks of
// a tree that are no power of two, may save a step; some forms are bounds where p is none, or a tree is pipelined.
TEST(ClosedForm, OfEveryAlgorithmIsWhatTheSimulationSays) {
  Link with_gap = plain_link();
  with_gap.gap = Seconds(2e-6);
  for (const Kind kind : schedule::collectives()) {
    for (const Algorithm algorithm : schedule::algorithms_of(kind)) {
      for (int p = 2; p <= 17; ++p) {
        for (const Elements chunk : {16, 48, 9'600}) {
          SCOPED_TRACE(testing::Message() << to_text(kind) << ' ' << to_text(algorithm) << ' ' << p << ' ' << chunk);
          auto shape = floats(kind, algorithm, chunk * p, p);
          if (algorithm == pipelined_tree || algorithm == pipelined_chain) shape.segment = kFloat * chunk;
          if (algorithm != bruck) {  // some ranks of which split a message and others do not, around the eager limit
            EXPECT_LE(simulated(shape, rich_link()), predicted(shape, rich_link()) * (1 + 1e-9));
          }
          EXPECT_LE(simulated(shape, gapped_link()), predicted(shape, gapped_link()) * (1 + 1e-9));
          const auto form = predicted_time(shape, with_gap);
          const double simulation = simulated(shape, with_gap), all = form.total().count();
          EXPECT_LE(simulation, all * (1 + 1e-9));
          const bool is_power = std::has_single_bit(static_cast<unsigned>(p));
          const bool bound = algorithm == pipelined_tree || algorithm == bruck ||
                             (kind == all_gather && algorithm == recursive_doubling && !is_power);
          const bool saves = !is_power && (algorithm == recursive_doubling || algorithm == binomial_tree ||
                                           algorithm == recursive_halving_doubling);
          if (bound) continue;
          EXPECT_GE(simulation, (saves ? all * (1 - 1. / form.steps) : all) * (1 - 1e-9));
        }
      }
    }
  }
}

TEST(ClosedForm, OfBrucksAllGatherIsExactWithoutAGap) {
  for (int p = 2; p <= 17; ++p) {
    const auto shape = floats(all_gather, bruck, 240 * p, p);
    EXPECT_NEAR(simulated(shape, plain_link()), predicted(shape, plain_link()), 1e-12) << p;
  }
}

TEST(ClosedForm, BytesAreThoseOfThePlans) {
  for (int p = 1; p <= 17; ++p) {
    for (const Elements elements : {Elements{0}, Elements{1}, Elements{p}, Elements{1001}}) {
      for (const Kind kind : schedule::collectives()) {
        for (const Algorithm algorithm : schedule::algorithms_of(kind)) {
          const auto shape = floats(kind, algorithm, elements, p);
          Bytes total{0}, least{0}, largest{0};
          for (const Plan& plan : plans_of(shape)) {
            const Bytes sent = kFloat * schedule::sent_elements(plan);
            total += sent, largest = std::max(largest, sent);
            least = plan.rank == 0 ? sent : std::min(least, sent);
          }
          const WireBytes wire = wire_bytes(shape);
          EXPECT_EQ(wire.total, total) << to_text(kind) << ' ' << to_text(algorithm) << p << ' ' << elements;
          EXPECT_EQ(wire.least, least) << to_text(kind) << ' ' << to_text(algorithm) << p << ' ' << elements;
          EXPECT_EQ(wire.largest, largest) << to_text(kind) << ' ' << to_text(algorithm) << p << ' ' << elements;
        }
      }
    }
  }
}

TEST(ClosedForm, TheRootOfATreeSendsMostAndALeafOnce) {
  const Bytes bytes(1000);
  for (const auto& [p, levels] : {std::pair(2, 1), {3, 2}, {8, 3}, {9, 4}, {64, 6}}) {
    const WireBytes wire = wire_bytes({all_reduce, binomial_tree, bytes, p});
    EXPECT_EQ(wire.least, bytes) << p;
    EXPECT_LE(wire.largest, bytes * levels) << p;
    EXPECT_EQ(wire.largest == bytes * levels, p != 9) << p;  // one child less, since the lower half of 9 is 4
    const WireBytes charged = charged_tree_bytes({all_reduce, binomial_tree, bytes, p});
    EXPECT_EQ(charged.least, bytes * 2);
    EXPECT_EQ(charged.largest, bytes * 2);
    EXPECT_EQ(predicted_time({all_reduce, binomial_tree, bytes, p}, plain_link()).steps, 2 * levels);
  }
}

// alpha 20 us, 1.25 GB/s.
TEST(ClosedForm, GivesTheWorkedExamples) {
  const Link link = plain_link();
  const auto time = [&](Kind kind, Algorithm algorithm, int p) {
    return predicted({kind, algorithm, Bytes(100'000'000), p}, link);
  };
  EXPECT_NEAR(time(all_reduce, ring, 4), 0.120120, 5e-7);
  EXPECT_NEAR(time(all_reduce, binomial_tree, 4), 0.320080, 5e-7);
  EXPECT_NEAR(time(all_reduce, recursive_doubling, 4), 2 * (20e-6 + 0.08), 1e-12);
  EXPECT_NEAR(time(all_reduce, recursive_halving_doubling, 4), 4 * 20e-6 + 1.5 * 0.08, 1e-12);
  EXPECT_NEAR(time(all_reduce, recursive_halving_doubling, 6), 6 * 20e-6 + 3.5 * 0.08, 1e-12);
  EXPECT_NEAR(time(all_reduce, direct, 4), 2 * 20e-6 + 1.5 * 0.08, 1e-12);
  EXPECT_NEAR(time(broadcast, pipelined_chain, 4), 3 * 20e-6 + 1.5 * 0.08, 1e-12);
  EXPECT_NEAR(time(reduce, binomial_tree, 5), 3 * (20e-6 + 0.08), 1e-12);
  EXPECT_NEAR(time(reduce_scatter, recursive_halving, 8), 3 * 20e-6 + 7.0 / 8 * 0.08, 1e-12);
}

TEST(ClosedForm, SplitsLatencyBandwidthAndAdding) {
  const Link link{Seconds(1e-3), Seconds(1e-4), SecondsPerByte(1e-6), SecondsPerByte(1e-7), "test"};
  const auto time = predicted_time({all_reduce, direct, Bytes(4000), 4}, link);
  EXPECT_EQ(time.steps, 2);
  EXPECT_NEAR(time.latency.count(), 2e-3 + 6e-4, 1e-15);
  EXPECT_NEAR(time.bandwidth.count(), 6e-3, 1e-15);
  EXPECT_NEAR(time.reduction.count(), 3e-4, 1e-15);
}

TEST(ClosedForm, OneRankSendsNothing) {
  for (const Kind kind : schedule::collectives()) {
    for (const Algorithm algorithm : schedule::algorithms_of(kind)) {
      const CollectiveShape shape{kind, algorithm, Bytes(1000), 1};
      EXPECT_EQ(predicted_time(shape, rich_link()).total(), Seconds(0)) << to_text(algorithm);
      EXPECT_EQ(predicted_time(shape, rich_link()).steps, 0);
      EXPECT_EQ(wire_bytes(shape).total, Bytes(0));
      EXPECT_EQ(charged_tree_bytes(shape).total, Bytes(0));
    }
  }
}

TEST(ClosedForm, RefusesAnAlgorithmThatTheCollectiveLacks) {
  EXPECT_THROW(predicted_time({broadcast, direct, Bytes(8), 2}, plain_link()), ContractError);
  EXPECT_THROW(wire_bytes({all_reduce, bruck, Bytes(8), 3}), ContractError);
  EXPECT_THROW(wire_bytes({all_reduce, ring, Bytes(7), 2, Bytes(2)}), ContractError);
}

TEST(ClosedForm, EveryOneHasItsText) {
  for (const int p : {1, 6, 8}) {
    for (const Kind kind : schedule::collectives()) {
      for (const Algorithm algorithm : schedule::algorithms_of(kind)) {
        const auto& text = closed_form_text(kind, algorithm, p);
        EXPECT_EQ(text.collective, kind);
        EXPECT_EQ(text.algorithm, algorithm);
        EXPECT_FALSE(text.largest.empty());
      }
    }
  }
}

Machine machine_of(int ranks_per_node) {
  Machine machine;
  machine.inside = {Seconds(1e-5), Seconds(0), SecondsPerByte(1e-9), SecondsPerByte(0), "inside"};
  machine.between = {Seconds(1e-4), Seconds(0), SecondsPerByte(1e-8), SecondsPerByte(0), "between"};
  machine.device.ranks_per_node = ranks_per_node;
  return machine;
}

TEST(LinksOf, AreThoseThatHopsInHostOrderTake) {
  const auto names = [](int per_node, int ranks) {
    std::string text;
    for (const Link& link : links_of(machine_of(per_node), ranks)) text += link.source + ' ';
    return text;
  };
  EXPECT_EQ(names(8, 8), "inside ");
  EXPECT_EQ(names(8, 9), "inside between ");
  EXPECT_EQ(names(1, 2), "between ");
  EXPECT_EQ(names(0, 4), "between ");
}

// The slower hop bounds every step. The simulation finds a bit less, since the port between nodes goes on while the
// last message is under way: all latencies between nodes but one may hide behind the hops inside.
TEST(LinksOf, BoundARingOverNodes) {
  for (const int nodes : {2, 3, 4}) {
    const Machine machine = machine_of(4);
    std::vector<int> node;
    for (int rank = 0; rank < 4 * nodes; ++rank) node.push_back(rank / 4);
    for (const Elements chunk : {10, 100'000}) {
      const auto shape = floats(all_reduce, ring, chunk * 4 * nodes, 4 * nodes);
      const auto time = predicted_time(shape, links_of(machine, shape.ranks));
      EXPECT_EQ(time.link, 1U);
      const double simulation = simulated(shape, machine.network(node));
      EXPECT_LE(simulation, time.total().count() * (1 + 1e-9));
      EXPECT_GE(simulation, time.bandwidth.count());
    }
  }
}

TEST(LinksOf, ARingIsAsSlowAsItsHopsInsideWhereThoseAreSlower) {
  Machine machine = machine_of(4);
  std::swap(machine.inside, machine.between);
  EXPECT_EQ(predicted_time({all_reduce, ring, Bytes(1000), 8}, links_of(machine, 8)).link, 0U);
}

TEST(Crossovers, RingAndRecursiveDoublingAreEqualAt220000BytesOf8Ranks) {
  const Link link = plain_link();
  const auto all = crossovers(all_reduce, 8, std::span(&link, 1));
  const auto found =
      std::ranges::find_if(all, [](const Crossover& c) { return c.below == recursive_doubling && c.above == ring; });
  ASSERT_NE(found, all.end());
  EXPECT_EQ(found->size, Bytes(220'000));
  EXPECT_NEAR(found->time.count(), 3 * (20e-6 + 220'000 / 1.25e9), 1e-12);
  EXPECT_TRUE(std::ranges::is_sorted(all, {}, &Crossover::size));
}

TEST(Crossovers, HoldForWhatTheyName) {
  const std::vector<Link> links{plain_link(), rich_link()};
  for (const Kind kind : schedule::collectives()) {
    for (const int p : {2, 3, 6, 8, 1000}) {
      for (const Crossover& c : crossovers(kind, p, links)) {
        const auto time = [&](Algorithm algorithm, std::int64_t bytes) {
          return predicted_time({kind, algorithm, Bytes(bytes), p}, links).total().count();
        };
        EXPECT_LT(time(c.below, c.size.value() - 1), time(c.above, c.size.value() - 1)) << p;
        EXPECT_GE(time(c.below, c.size.value()), time(c.above, c.size.value()) * (1 - 1e-11)) << p;
      }
    }
  }
}

}  // namespace
}  // namespace annulet::cost
