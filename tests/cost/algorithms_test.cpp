// The simulation of each algorithm's plans against its time in the alpha-beta model, where that is exact: one segment a
// chunk, chunks of one size, no gap, no cost of adding.
#include "annulet/schedule/algorithms.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <numeric>

#include "annulet/cost/simulate.hpp"
#include "annulet/schedule/sparse_all_gather.hpp"
#include "schedule/plans.hpp"

namespace annulet::cost {
namespace {

using schedule::Algorithm;
using schedule::Plan;
using schedule::PlanShape;
using Kind = schedule::Collective;

constexpr double kAlpha = 1e-3, kBeta = 1e-6;  // seconds, seconds per byte
const Link kLink{Seconds(kAlpha), Seconds(0), SecondsPerByte(kBeta), SecondsPerByte(0), "test"};

double end_of(const std::vector<Plan>& plans) {
  LaunchedCollective collective{{}, Bytes(4), std::vector<Seconds>(plans.size())};
  for (const Plan& plan : plans) collective.plans.push_back(&plan);
  const auto ends = simulate(std::span(&collective, 1), kLink)[0];
  return std::max_element(ends.begin(), ends.end())->count();
}

double simulated(Kind kind, Algorithm algorithm, PlanShape shape) {
  return end_of(schedule::plans_of(shape.world, [&](int rank) {
    shape.rank = rank;
    return make_plan(kind, algorithm, shape);
  }));
}

constexpr Elements kPerRank = 240;  // so that 1 to 17 ranks, folded ones and up to 30 segments divide the vector

// Of a vector of kPerRank p elements in one segment; seconds.
double simulated(Kind kind, Algorithm algorithm, int p, int root = 0) {
  return simulated(kind, algorithm, {0, p, kPerRank * p, kPerRank * p, 2, root});
}

double seconds_of(Elements elements) { return kBeta * 4 * static_cast<double>(elements); }
double vector_seconds(int p) { return seconds_of(kPerRank * p); }                   // M beta
double exchanged_seconds(int p) { return seconds_of(kPerRank * Elements{p - 1}); }  // (p-1)/p M beta
int log2_up(int p) { return static_cast<int>(std::bit_width(static_cast<unsigned>(p - 1))); }

// The larger half of a group is sent at every level: of a power of two together (p-1)/p M.
double halving_seconds(int p) {
  Elements chunks = 0;
  for (int group = p; group > 1; group = (group + 1) / 2) chunks += (group + 1) / 2;
  return log2_up(p) * kAlpha + seconds_of(kPerRank * chunks);
}

std::vector<int> up_to_17() {
  std::vector<int> ranks(17);
  std::iota(ranks.begin(), ranks.end(), 1);
  return ranks;
}

TEST(SimulatedAllReduce, TakesTheTimeOfItsForm) {
  for (const int p : up_to_17()) {
    const auto time = [&](Algorithm algorithm) { return simulated(Kind::all_reduce, algorithm, p); };
    EXPECT_NEAR(time(Algorithm::ring), 2 * (p - 1) * kAlpha + 2 * exchanged_seconds(p), 1e-12) << p;
    EXPECT_NEAR(time(Algorithm::direct), (p > 1 ? 2 * kAlpha : 0) + 2 * exchanged_seconds(p), 1e-12) << p;
    EXPECT_NEAR(time(Algorithm::binomial_tree), 2 * log2_up(p) * (kAlpha + vector_seconds(p)), 1e-12) << p;
  }
  for (const int p : {1, 2, 4, 8, 16}) {
    const auto time = [&](Algorithm algorithm) { return simulated(Kind::all_reduce, algorithm, p); };
    EXPECT_NEAR(time(Algorithm::recursive_doubling), log2_up(p) * (kAlpha + vector_seconds(p)), 1e-12) << p;
    EXPECT_NEAR(time(Algorithm::recursive_halving_doubling), 2 * log2_up(p) * kAlpha + 2 * exchanged_seconds(p), 1e-12)
        << p;
  }
}

TEST(SimulatedAllReduce, ByHalvingAndDoublingTakesAFoldMoreWherePIsNoPowerOfTwo) {
  for (const int p : {3, 5, 6, 7, 9, 12, 15, 17}) {
    const int q = static_cast<int>(std::bit_floor(static_cast<unsigned>(p)));
    const double fold = 2 * (kAlpha + vector_seconds(p));
    const double unfolded = 2 * log2_up(q) * kAlpha + 2 * vector_seconds(p) * (q - 1) / q;
    const double time = simulated(Kind::all_reduce, Algorithm::recursive_halving_doubling, p);
    EXPECT_NEAR(time, unfolded + fold, 1e-12) << p;
  }
}

TEST(SimulatedAllReduce, AlongAPipelinedTreeTakesAtMostItsReduceAndItsBroadcast) {
  for (const int d : {0, 1, 2, 3}) {
    const int p = (2 << d) - 1;  // a full tree
    for (const int segments : {1, 2, 10}) {
      const Elements n = kPerRank * p;
      const double time = simulated(Kind::all_reduce, Algorithm::pipelined_tree, {0, p, n, n / segments, 4});
      const double segment = seconds_of(n / segments);
      const double form = d == 0 ? 0 : 2 * d * kAlpha + 3 * (d + segments - 1) * segment;
      EXPECT_LE(time, form + 1e-12) << p << ' ' << segments;
      if (segments == 1) {
        EXPECT_NEAR(time, form, 1e-12) << p;
      }
    }
  }
}

TEST(SimulatedReduceScatter, TakesTheTimeOfItsForm) {
  for (const int p : up_to_17()) {
    const auto time = [&](Algorithm algorithm) { return simulated(Kind::reduce_scatter, algorithm, p); };
    EXPECT_NEAR(time(Algorithm::ring), (p - 1) * kAlpha + exchanged_seconds(p), 1e-12) << p;
    EXPECT_NEAR(time(Algorithm::direct), (p > 1 ? kAlpha : 0) + exchanged_seconds(p), 1e-12) << p;
    EXPECT_NEAR(time(Algorithm::recursive_halving), halving_seconds(p), 1e-12) << p;
  }
}

TEST(SimulatedAllGather, TakesTheTimeOfItsForm) {
  for (const int p : up_to_17()) {
    const auto time = [&](Algorithm algorithm) { return simulated(Kind::all_gather, algorithm, p); };
    EXPECT_NEAR(time(Algorithm::ring), (p - 1) * kAlpha + exchanged_seconds(p), 1e-12) << p;
    EXPECT_NEAR(time(Algorithm::direct), (p > 1 ? kAlpha : 0) + exchanged_seconds(p), 1e-12) << p;
    EXPECT_NEAR(time(Algorithm::bruck), log2_up(p) * kAlpha + exchanged_seconds(p), 1e-12) << p;
    const double over = time(Algorithm::recursive_doubling) - halving_seconds(p);  // whoever sends twice in odd groups
    EXPECT_GE(over, -1e-12) << p;
    EXPECT_LE(over, (std::has_single_bit(static_cast<unsigned>(p)) ? 0 : vector_seconds(p)) + 1e-12) << p;
  }
}

TEST(SimulatedBroadcastAndReduce, TakeTheTimeOfTheirForm) {
  for (const Kind kind : {Kind::broadcast, Kind::reduce}) {
    for (const int p : up_to_17()) {
      EXPECT_NEAR(simulated(kind, Algorithm::binomial_tree, p, p / 2), log2_up(p) * (kAlpha + vector_seconds(p)), 1e-12)
          << p;
      for (const int segments : {1, 2, 30}) {
        const Elements n = kPerRank * p;
        const double time = simulated(kind, Algorithm::pipelined_chain, {0, p, n, n / segments, 2, p / 2});
        const double form = p == 1 ? 0 : (p - 1) * kAlpha + (p - 2 + segments) * seconds_of(n / segments);
        EXPECT_NEAR(time, form, 1e-12) << p << ' ' << segments;
      }
    }
  }
}

TEST(SimulatedSparseAllGather, TakesTheTimeOfItsFormWhereLengthsAreEqualAndNoMoreOtherwise) {
  for (const int p : up_to_17()) {
    const auto time = [&](const std::vector<Elements>& lengths) {
      return end_of(schedule::plans_of(p, [&](int rank) { return schedule::sparse_all_gather({rank, lengths}); }));
    };
    std::vector<Elements> lengths(static_cast<std::size_t>(p), 50);
    const double form = (p - 1) * (kAlpha + seconds_of(50));
    EXPECT_NEAR(time(lengths), form, 1e-12) << p;
    for (std::size_t r = 0; r < lengths.size(); r += 2) lengths[r] = 7;
    EXPECT_LE(time(lengths), form + 1e-12) << p;
  }
}

}  // namespace
}  // namespace annulet::cost
