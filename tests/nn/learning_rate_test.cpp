#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "annulet/nn/optimizer.hpp"

namespace annulet::nn {
namespace {

TEST(Schedule, WarmsUpToThePeakAndStays) {
  const Schedule schedule{.peak = 1, .warmup = 3};
  EXPECT_DOUBLE_EQ(schedule.at(0), 0.25);
  EXPECT_DOUBLE_EQ(schedule.at(2), 0.75);
  EXPECT_DOUBLE_EQ(schedule.at(3), 1);
  EXPECT_DOUBLE_EQ(schedule.at(1000), 1);
}

TEST(Schedule, FallsAlongACosineToFinalAndStays) {
  const Schedule schedule{.kind = Schedule::Kind::cosine, .peak = 1, .warmup = 2, .total = 12, .final = 0.2};
  EXPECT_DOUBLE_EQ(schedule.at(2), 1);
  EXPECT_DOUBLE_EQ(schedule.at(7), 0.6);
  EXPECT_DOUBLE_EQ(schedule.at(12), 0.2);
  EXPECT_DOUBLE_EQ(schedule.at(13), 0.2);
}

TEST(Schedule, SurvivesATotalWithinTheWarmUp) {
  const Schedule schedule{.kind = Schedule::Kind::cosine, .peak = 1, .warmup = 5, .total = 5, .final = 0.5};
  EXPECT_DOUBLE_EQ(schedule.at(5), 0.5);
}

TEST(ClipScale, BringsTheNormToItsBoundAndLeavesSmallOnesAlone) {
  EXPECT_NEAR(clip_scale(5, 1), 0.2, 1e-6);
  EXPECT_EQ(clip_scale(0.5, 1), 1);
  EXPECT_EQ(clip_scale(5, 0), 1);
  EXPECT_TRUE(std::isnan(clip_scale(std::numeric_limits<double>::quiet_NaN(), 1)));
}

}  // namespace
}  // namespace annulet::nn
