#include "annulet/plan/mfu.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "annulet/base/error.hpp"
#include "annulet/plan/flops.hpp"

namespace annulet::plan {
namespace {

// In percent, with `digits` after the point.
double rounded(double part, int digits) {
  const double unit = std::pow(10, digits);
  return std::round(100 * part * unit) / unit;
}

double truncated(double part, int digits) {
  const double unit = std::pow(10, digits);
  return std::floor(100 * part * unit) / unit;
}

TEST(Mfu, OfPalm) {
  const Devices devices{6144, FlopRate(275e12)};
  const TokenRate rate(238.3e3);
  const Elements n = 540'350'000'000;
  EXPECT_EQ(rounded(mfu(flops_per_token(n, {}), rate, devices), 1), 45.7);
  EXPECT_EQ(rounded(mfu(flops_per_token(n, {118, 48, 256, 2048}), rate, devices), 1), 46.2);
}

TEST(Mfu, OfMegatronTuringWhichIsTruncated) {
  const Devices devices{2240, FlopRate(312e12)};
  const TokenRate rate(65.43e3);
  const Elements n = 530'000'000'000;
  EXPECT_EQ(truncated(mfu(flops_per_token(n, {}), rate, devices), 1), 29.7);
  EXPECT_EQ(truncated(mfu(flops_per_token(n, {105, 128, 160, 2048}), rate, devices), 1), 30.2);
}

TEST(Mfu, OfMosaicMlsRows) {
  const FlopRate peak(989.5e12);
  // Widths are heads times columns.
  const double b7 = mfu(flops_per_token(6'658'859'008, {32, 32, 128, 2048}), TokenRate(85'144), {8, peak});
  const double b70 = mfu(flops_per_token(64'862'437'376, {80, 64, 128, 2048}), TokenRate(66'523), {64, peak});
  const double b1 = mfu(flops_per_token(1'315'950'592, {24, 16, 128, 2048}), TokenRate(2'841'754), {64, peak});
  EXPECT_EQ(rounded(b7, 2), 46.44);
  EXPECT_EQ(rounded(b70, 2), 42.57);
  EXPECT_EQ(rounded(b1, 2), 40.85);
}

// Steps of 2^20 tokens on 64 devices; compute alone takes operations / (devices * peak * efficiency).
TEST(Mfu, OfTheDecksSteps) {
  const Devices devices{64, FlopRate(989e12)};
  const Flops step = flops_per_token(6'738'149'376, {32, 32, 128, 4096}) * 1'048'576;
  const Seconds compute(step.value() / (64 * 989e12 * 0.473)), network(0.5319), wan(2.1239);
  EXPECT_EQ(std::round(compute.count() * 100) / 100, 1.64);
  EXPECT_EQ(rounded(mfu(step, compute, devices), 1), 47.3);
  EXPECT_EQ(rounded(mfu(step, compute + network, devices), 1), 35.7);
  EXPECT_EQ(rounded(mfu(step, compute + wan, devices), 1), 20.6);
  EXPECT_EQ(rounded(mfu(step, wan, devices), 1), 36.6);
}

TEST(Mfu, AsksForDevicesWithAPeak) {
  EXPECT_THROW(mfu(Flops(1), TokenRate(1), {0, FlopRate(1)}), ContractError);
  EXPECT_THROW(mfu(Flops(1), TokenRate(1), {1, FlopRate(0)}), ContractError);
}

TEST(TrainingTime, IsMegatrons) {
  const auto days = [](const Training& training) { return std::round(training_time(training).count() / 86'400); };
  EXPECT_EQ(days({175'000'000'000, 300'000'000'000, 1024, FlopRate(140e12)}), 34);
  EXPECT_EQ(days({1'008'000'000'000, 450'000'000'000, 3072, FlopRate(163e12)}), 84);
}

}  // namespace
}  // namespace annulet::plan
