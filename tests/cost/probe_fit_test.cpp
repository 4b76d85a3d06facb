#include "annulet/cost/probe_fit.hpp"

#include <gtest/gtest.h>

#include "annulet/base/error.hpp"
#include "annulet/schedule/probes.hpp"
#include "annulet/schedule/ring.hpp"
#include "schedule/plans.hpp"

namespace annulet::cost {
namespace {

const Link kSlow{Seconds(30e-6), Seconds(2e-6), SecondsPerByte(1e-9), SecondsPerByte(1e-10), "slow"};
const Link kFast{Seconds(2e-6), Seconds(1e-6), SecondsPerByte(1e-10), SecondsPerByte(1e-10), "fast"};
const EagerLink kEager{Bytes(4096), Seconds(10e-6), Seconds(1e-6), SecondsPerByte(3e-9)};

// Ping-pongs and streams both ways of two ranks, and rings of all, as they would take on `network`.
std::vector<Probe> probes_on(const Network& network, int world, int first, int second) {
  std::vector<Probe> probes;
  const auto add = [&](auto plan_of, int timed) {
    Probe probe{schedule::plans_of(world, plan_of), timed, Seconds(0)};
    probe.time = probe_time(probe, network);
    probes.push_back(std::move(probe));
  };
  for (const Elements n : {16, 256, 1024, 2048, 16384, 262144}) {
    add([&](int r) { return schedule::ping_pong({r, world, first, second, n, 2}); }, first);
    add([&](int r) { return schedule::both_ways({r, world, first, second, n, 8}); }, first);
    add([&](int r) { return schedule::ring_all_reduce({r, world, n * 4, 1 << 14, 2}); }, -1);
  }
  return probes;
}

double error(double value, double truth) { return std::abs(value / truth - 1); }

void expect_close(const Link& link, const Link& truth) {
  EXPECT_TRUE(error(link.alpha.count(), truth.alpha.count()) <= 1e-3) << to_text(link);
  EXPECT_TRUE(error(link.gap.count(), truth.gap.count()) <= 1e-3) << to_text(link);
  EXPECT_TRUE(error(link.beta.value(), truth.beta.value()) <= 1e-3) << to_text(link);
}

const Network kUnknown(Link{{}, {}, {}, kSlow.gamma, "fitted"});

TEST(ProbeFit, TellsLatencyGapAndBandwidthApart) {
  for (const int world : {2, 3}) {
    const ProbeFit fit = fit_probes(probes_on(kSlow, world, 0, 1), {kUnknown, Scope::inside, std::nullopt});
    expect_close(fit.link, kSlow);
    EXPECT_EQ(fit.link.gamma, kSlow.gamma);
    EXPECT_EQ(fit.link.source, "fitted");
    EXPECT_EQ(fit.negative, "");
    EXPECT_TRUE(fit.worst_residual <= 1e-3);
  }
}

TEST(ProbeFit, FindsBothPiecesOfAPiecewiseLink) {
  Link truth = kSlow;
  truth.eager = kEager;
  const ProbeFit fit = fit_probes(probes_on(truth, 2, 0, 1), {kUnknown, Scope::inside, kEager.limit});
  expect_close(fit.link, truth);
  ASSERT_TRUE(fit.link.eager);
  expect_close({fit.link.eager->alpha, fit.link.eager->gap, fit.link.eager->beta, {}, ""},
               {kEager.alpha, kEager.gap, kEager.beta, {}, ""});
}

TEST(ProbeFit, KeepsOnePieceWhereOneExplainsEverything) {
  const ProbeFit fit = fit_probes(probes_on(kSlow, 2, 0, 1), {kUnknown, Scope::inside, kEager.limit});
  EXPECT_FALSE(fit.link.eager);
}

TEST(ProbeFit, FindsTheLinkBetweenNodesBehindTheOneInside) {
  const Network truth(kFast, kSlow, {0, 0, 1, 1});
  const Network known(kFast, kUnknown.between, truth.node);
  const ProbeFit fit = fit_probes(probes_on(truth, 4, 0, 2), {known, Scope::between, std::nullopt});
  expect_close(fit.link, kSlow);
}

TEST(ProbeFit, FindsTheBurstOfACardThatIsLimited) {
  Link truth = kSlow;
  truth.burst = Bytes(12000), truth.beta = SecondsPerByte(8e-9), truth.burst_pace = SecondsPerByte(1.5e-9);
  const Network known(kFast, kUnknown.between, {0, 1});
  const ProbeFit fit = fit_probes(probes_on({kFast, truth, {0, 1}}, 2, 0, 1), {known, Scope::between, kEager.limit});
  EXPECT_TRUE(fit.worst_residual <= 1e-3) << to_text(fit.link);
  EXPECT_TRUE(error(fit.link.beta.value(), truth.beta.value()) <= 1e-3) << to_text(fit.link);
  EXPECT_TRUE(error(fit.link.burst.as_double(), 12000) <= 1e-3) << to_text(fit.link);
  EXPECT_TRUE(error(fit.link.burst_pace.value(), 1.5e-9) <= 1e-3) << to_text(fit.link);
}

TEST(ProbeFit, FindsNoBurstWhereThereIsNone) {
  const Network known(kFast, kUnknown.between, {0, 1});
  const ProbeFit fit = fit_probes(probes_on({kFast, kSlow, {0, 1}}, 2, 0, 1), {known, Scope::between, std::nullopt});
  EXPECT_EQ(fit.link.burst, Bytes(0));
}

// What a machine does besides only adds: three of the probes took up to twice as long.
TEST(ProbeFit, IsNotBentByAFewProbesThatWereHeldUp) {
  std::vector<Probe> probes = probes_on(kSlow, 2, 0, 1);
  probes[3].time *= 1.3, probes[8].time *= 2, probes[15].time *= 1.5;
  const ProbeFit fit = fit_probes(probes, {kUnknown, Scope::inside, std::nullopt});
  EXPECT_TRUE(error(fit.link.alpha.count(), kSlow.alpha.count()) <= 0.02) << to_text(fit.link);
  EXPECT_TRUE(error(fit.link.beta.value(), kSlow.beta.value()) <= 0.02) << to_text(fit.link);
}

// Rings that no link explains together with pairs: the heavier, the nearer.
TEST(ProbeFit, ComesNearestToWhatWeighsMost) {
  Link quicker = kSlow;
  quicker.alpha = 0.8 * kSlow.alpha;
  const auto error_of_rings = [&](double weight) {
    std::vector<Probe> probes = probes_on(quicker, 3, 0, 1);
    for (Probe& probe : probes) {
      if (probe.timed < 0) probe.time = probe_time(probe, kSlow), probe.weight = weight;
    }
    const ProbeFit fit = fit_probes(probes, {kUnknown, Scope::inside, std::nullopt});
    double sum = 0;
    for (std::size_t i = 0; i < probes.size(); ++i) {
      if (probes[i].timed < 0) sum += error(fit.predicted[i].count(), probes[i].time.count());
    }
    return sum;
  };
  EXPECT_LT(error_of_rings(16), 0.8 * error_of_rings(1));
}

TEST(ProbeFit, SaysThatTheBestLinkWouldHaveANegativeLatency) {
  std::vector<Probe> probes;
  for (const double n : {1e3, 1e4, 1e5, 1e6}) {
    probes.push_back({schedule::plans_of(2,
                                         [&](int r) {
                                           return schedule::ping_pong({r, 2, 0, 1, Elements(n), 1});
                                         }),
                      0, Seconds(2 * (4e-9 * n - 1e-6))});
  }
  EXPECT_EQ(fit_probes(probes, {kUnknown, Scope::inside, std::nullopt}).negative, "alpha");
}

TEST(ProbeFit, RefusesWhatCannotBeFitted) {
  EXPECT_THROW(fit_probes({}, {kUnknown, Scope::inside, std::nullopt}), ContractError);
  std::vector<Probe> probes = probes_on(kSlow, 2, 0, 1);
  probes[0].time = Seconds(0);
  EXPECT_THROW(fit_probes(probes, {kUnknown, Scope::inside, std::nullopt}), ContractError);
  probes[0].time = Seconds(1), probes[0].weight = 0;
  EXPECT_THROW(fit_probes(probes, {kUnknown, Scope::inside, std::nullopt}), ContractError);
}

}  // namespace
}  // namespace annulet::cost
