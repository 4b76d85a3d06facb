#include "annulet/cost/fit.hpp"

#include <gtest/gtest.h>

#include <array>

#include "annulet/base/error.hpp"
#include "annulet/base/random.hpp"
#include "annulet/cost/closed_form.hpp"

namespace annulet::cost {
namespace {

const Link kTrue{Seconds(20e-6), Seconds(1e-6), SecondsPerByte(1e-9), SecondsPerByte(2e-10), "true"};
const Link kKnown{Seconds(0), kTrue.gap, SecondsPerByte(0), kTrue.gamma, "fitted"};
constexpr std::array<std::int64_t, 5> kSizes{1 << 10, 9 << 10, 96 << 10, 864 << 10, 8 << 20};

std::vector<RingPoint> points_on(const Link& link, int ranks, Elements segment) {
  std::vector<RingPoint> points;
  for (const std::int64_t size : kSizes) {
    points.push_back({Bytes(size), ranks, segment, 4, Seconds(0)});
    points.back().time = ring_point_time(points.back(), link);
  }
  return points;
}

double relative_error(double value, double truth) { return std::abs(value / truth - 1); }

TEST(LinkFit, RecoversTheLinkOfUnsegmentedRings) {
  for (const int ranks : {2, 3, 4, 7, 16, 300}) {
    const LinkFit fit = fit_link(points_on(kTrue, ranks, 8 << 20), kKnown);
    EXPECT_TRUE(relative_error(fit.link.alpha.count(), kTrue.alpha.count()) <= 1e-9) << ranks;
    EXPECT_TRUE(relative_error(fit.link.beta.value(), kTrue.beta.value()) <= 1e-9) << ranks;
    EXPECT_TRUE(fit.worst_residual <= 1e-9) << ranks;
    EXPECT_FALSE(fit.clamped);
  }
}

TEST(LinkFit, RecoversTheLinkOfSegmentedRingsThroughTheSimulation) {
  for (const int ranks : {2, 3, 4, 7}) {
    for (const Elements segment : {1 << 13, 1 << 16}) {
      const LinkFit fit = fit_link(points_on(kTrue, ranks, segment), kKnown);
      EXPECT_TRUE(relative_error(fit.link.alpha.count(), kTrue.alpha.count()) <= 1e-3) << ranks << ' ' << segment;
      EXPECT_TRUE(relative_error(fit.link.beta.value(), kTrue.beta.value()) <= 1e-3) << ranks << ' ' << segment;
      EXPECT_TRUE(fit.worst_residual <= 1e-3) << fit.worst_residual;
    }
  }
}

TEST(LinkFit, KeepsWhatIsKnown) {
  const LinkFit fit = fit_link(points_on(kTrue, 4, 1 << 16), kKnown);
  EXPECT_EQ(fit.link.gap, kKnown.gap);
  EXPECT_EQ(fit.link.gamma, kKnown.gamma);
  EXPECT_EQ(fit.link.source, "fitted");
}

TEST(LinkFit, StaysCloseUnderNoise) {
  const RandomStream random(7, "noise");
  std::vector<RingPoint> points = points_on(kTrue, 4, 1 << 16);
  for (std::size_t i = 0; i < points.size(); ++i) points[i].time *= random.uniform(i, 0.95, 1.05);
  const LinkFit fit = fit_link(points, kKnown);
  EXPECT_TRUE(relative_error(fit.link.alpha.count(), kTrue.alpha.count()) <= 0.1);
  EXPECT_TRUE(relative_error(fit.link.beta.value(), kTrue.beta.value()) <= 0.1);
  EXPECT_TRUE(fit.worst_residual > 0 && fit.worst_residual <= 0.1) << fit.worst_residual;
  EXPECT_LE(fit.median_residual, fit.worst_residual);
}

// Twice the time at the largest size: absolute least squares would spoil the smallest sizes by thousands of percent.
TEST(LinkFit, WeighsRelativeErrors) {
  std::vector<RingPoint> points = points_on(kTrue, 4, 8 << 20);
  points.back().time *= 2;
  const LinkFit fit = fit_link(points, kKnown);
  EXPECT_TRUE(std::abs(fit.predicted.front() / points.front().time - 1) <= 0.05);
}

TEST(LinkFit, ClampsALatencyThatWouldBeNegative) {
  const std::vector<RingPoint> points{{Bytes(1 << 10), 2, 1 << 20, 4, Seconds(1e-6)},
                                      {Bytes(1 << 20), 2, 1 << 20, 4, Seconds(10e-3)}};
  const LinkFit fit = fit_link(points, {});
  EXPECT_TRUE(fit.clamped);
  EXPECT_EQ(fit.link.alpha, Seconds(0));
  EXPECT_GT(fit.link.beta.value(), 0);
}

TEST(LinkFit, ClampsASlownessThatWouldBeNegative) {
  const std::vector<RingPoint> points{{Bytes(1 << 10), 2, 1 << 20, 4, Seconds(5e-3)},
                                      {Bytes(1 << 20), 2, 1 << 20, 4, Seconds(4e-3)}};
  const LinkFit fit = fit_link(points, {});
  EXPECT_TRUE(fit.clamped);
  EXPECT_EQ(fit.link.beta.value(), 0);
  EXPECT_GT(fit.link.alpha, Seconds(0));
}

TEST(LinkFit, OnePointDeterminesOnlyOneParameterAndSaysSo) {
  const LinkFit fit = fit_link(std::vector<RingPoint>{{Bytes(1 << 10), 2, 1 << 20, 4, Seconds(1e-3)}}, {});
  EXPECT_TRUE(fit.clamped);
  EXPECT_TRUE(fit.worst_residual <= 1e-12);
}

TEST(LinkFit, RefusesWhatCannotBeFitted) {
  EXPECT_THROW(fit_link({}, {}), ContractError);
  EXPECT_THROW(fit_link(std::vector<RingPoint>{{Bytes(1 << 10), 1, 1, 4, Seconds(1)}}, {}), ContractError);
  EXPECT_THROW(fit_link(std::vector<RingPoint>{{Bytes(1 << 10), 2, 1, 4, Seconds(0)}}, {}), ContractError);
}

TEST(RingPointTime, IsTheClosedFormWhereNothingIsAdded) {
  const Link link{Seconds(1e-3), Seconds(0), SecondsPerByte(1e-8), SecondsPerByte(0), "test"};
  for (const int ranks : {2, 4, 256}) {
    const RingPoint point{Bytes(1 << 20), ranks, 1 << 20, 4, Seconds(0)};
    EXPECT_NEAR(ring_point_time(point, link).count(), ring_all_reduce_time(Bytes(1 << 20), ranks, link).count(), 1e-12);
  }
}

TEST(RingPointTime, HidesLatencyBehindThePortWhereThereAreSegments) {
  const RingPoint whole{Bytes(8 << 20), 4, 8 << 20, 4, Seconds(0)}, cut{Bytes(8 << 20), 4, 1 << 14, 4, Seconds(0)};
  EXPECT_LT(ring_point_time(cut, kTrue), ring_point_time(whole, kTrue));
}

}  // namespace
}  // namespace annulet::cost
