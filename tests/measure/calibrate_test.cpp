#include "annulet/measure/calibrate.hpp"

#include <gtest/gtest.h>

#include "annulet/comm/emulated.hpp"
#include "annulet/measure/moving.hpp"
#include "collectives/in_process_ranks.hpp"

namespace annulet::measure {
namespace {

using collectives::run_ranks;

// One calibration on every rank of an in-process world.
std::vector<Calibration> calibrate(int world, const CalibrationOptions& options,
                                   std::optional<comm::EmulatedLink> link = std::nullopt) {
  std::vector<Calibration> results(static_cast<std::size_t>(world));
  run_ranks(world, [&](int rank, std::unique_ptr<comm::Transport> transport) {
    const TransportFactory make = [&] {
      return link ? comm::emulate(std::move(transport), *link) : std::move(transport);
    };
    results[static_cast<std::size_t>(rank)] = quick_calibration(make, options);
  });
  return results;
}

TEST(QuickCalibration, GivesEveryRankTheSameResult) {
  for (const int world : {2, 3, 5}) {
    CalibrationOptions options;
    options.largest = Bytes(64 << 10), options.budget = Seconds(0.05), options.segment = 1000;
    const std::vector<Calibration> all = calibrate(world, options);
    for (const Calibration& one : all) {
      EXPECT_EQ(one.link.alpha, all[0].link.alpha);
      EXPECT_EQ(one.link.beta, all[0].link.beta);
      EXPECT_EQ(one.link.gamma, all[0].link.gamma);
      EXPECT_EQ(one.link.source, all[0].link.source);
      EXPECT_EQ(one.median_residual, all[0].median_residual);
      EXPECT_EQ(one.worst_residual, all[0].worst_residual);
      EXPECT_EQ(one.clamped, all[0].clamped);
      EXPECT_EQ(one.took, all[0].took);
      ASSERT_EQ(one.points.size(), all[0].points.size());
      for (std::size_t i = 0; i < one.points.size(); ++i) EXPECT_EQ(one.points[i].time, all[0].points[i].time);
    }
  }
}

// A latency of 2 ms a message, in which the core computes, is no price; a copy is, of at most some nanoseconds a byte.
TEST(MovingPace, IsWhatPollsTakeHoweverLongMessagesAreOnTheirWay) {
  for (const Seconds latency : {Seconds(0), Seconds(2e-3)}) {
    run_ranks(2, [&](int, std::unique_ptr<comm::Transport> transport) {
      const TransportFactory make = [&] { return comm::emulate(std::move(transport), {latency, ByteRate(1e12)}); };
      const double pace = moving_pace(make, {.bytes = Bytes(1 << 20), .rounds = 3}).value();
      EXPECT_LT(pace, 2e-9);
      EXPECT_GE(pace, 0);
    });
  }
}

TEST(QuickCalibration, MeasuresTheSegmentsOfTraining) {
  CalibrationOptions options;
  options.largest = Bytes(64 << 10), options.budget = Seconds(0.05), options.segment = 500, options.slots = 2;
  const Calibration calibration = calibrate(2, options)[0];
  ASSERT_GE(calibration.points.size(), 2U);
  for (const cost::RingPoint& point : calibration.points) {
    EXPECT_EQ(point.segment, 500);
    EXPECT_EQ(point.slots, 2);
    EXPECT_EQ(point.ranks, 2);
    EXPECT_GT(point.time, Seconds(0));
  }
  EXPECT_GT(calibration.link.gamma.value(), 0);
  EXPECT_EQ(calibration.link.source, "calibrated: ring traffic, 2 ranks");
}

// Emulation only ever delays, and so does a busy machine: the points are strict below, the rest is loose.
TEST(QuickCalibration, RecoversAnEmulatedLink) {
  const comm::EmulatedLink slow{Seconds(20e-3), ByteRate(2e6)};
  CalibrationOptions options;
  options.budget = Seconds(1);
  const Calibration calibration = calibrate(2, options, slow)[0];
  for (const cost::RingPoint& point : calibration.points) {
    const cost::Link least{slow.latency, Seconds(0), cost::SecondsPerByte(1 / slow.bandwidth.value()), {}, ""};
    EXPECT_GE(point.time, 0.999 * ring_point_time(point, least));
  }
  EXPECT_TRUE(calibration.link.alpha >= 0.7 * slow.latency && calibration.link.alpha <= 1.5 * slow.latency)
      << to_text(calibration.link);
  const double slowness = calibration.link.beta.value() * slow.bandwidth.value();
  EXPECT_TRUE(slowness >= 0.7 && slowness <= 1.5) << slowness;
}

TEST(QuickCalibration, AWorldOfOneMeasuresNothing) {
  for (const Calibration& calibration : {calibrate(1, {})[0], quick_calibration([] { return nullptr; })}) {
    EXPECT_TRUE(calibration.points.empty());
    EXPECT_EQ(calibration.link.alpha, Seconds(0));
    EXPECT_EQ(calibration.link.beta.value(), 0);
    EXPECT_EQ(calibration.link.source, "one rank: nothing is sent");
  }
}

TEST(ReductionPace, IsPositiveForAnySegment) {
  EXPECT_GT(reduction_pace(1 << 16, 4, Seconds(0)).value(), 0);
  EXPECT_GT(reduction_pace(1, 1, Seconds(0)).value(), 0);
  EXPECT_GT(reduction_pace(Elements{1} << 40, 4, Seconds(0)).value(), 0);
}

}  // namespace
}  // namespace annulet::measure
