#include "annulet/plan/answer.hpp"

#include <gtest/gtest.h>

namespace annulet::plan {
namespace {

TEST(Cell, ShowsCountsWithThousandsApart) {
  EXPECT_EQ(cell(std::int64_t{0}).shown, "0");
  EXPECT_EQ(cell(std::int64_t{999}).shown, "999");
  EXPECT_EQ(cell(std::int64_t{1000}).shown, "1,000");
  EXPECT_EQ(cell(std::int64_t{6'738'149'376}).shown, "6,738,149,376");
  EXPECT_EQ(cell(std::int64_t{-999}).shown, "-999");
  EXPECT_EQ(cell(std::int64_t{-123'456}).shown, "-123,456");
  EXPECT_EQ(std::get<std::int64_t>(cell(std::int64_t{1000}).value), 1000);
}

TEST(Cell, ShowsAUnitAndKeepsBytesSecondsAndParts) {
  EXPECT_EQ(cell(Bytes(23'583'522'816)).shown, "23.58 GB");
  EXPECT_EQ(std::get<std::int64_t>(cell(Bytes(23'583'522'816)).value), 23'583'522'816);
  EXPECT_EQ(gigabytes(Bytes(23'583'522'816)).shown, "23.58");
  EXPECT_EQ(std::get<std::int64_t>(gigabytes(Bytes(23'583'522'816)).value), 23'583'522'816);
  EXPECT_EQ(cell(Seconds(0.0525)).shown, "52.5 ms");
  EXPECT_EQ(std::get<double>(cell(Seconds(0.0525)).value), 0.0525);
  EXPECT_EQ(milliseconds(Seconds(0.05247)).shown, "52.5");
  EXPECT_EQ(std::get<double>(milliseconds(Seconds(0.05247)).value), 0.05247);
  EXPECT_EQ(percent(0.3574).shown, "35.7 %");
  EXPECT_EQ(std::get<double>(percent(0.3574).value), 0.3574);
  EXPECT_EQ(number(10.6667, 1).shown, "10.7");
}

TEST(Cell, OfNothingHasNoValue) {
  EXPECT_EQ(cell().shown, "-");
  EXPECT_TRUE(std::holds_alternative<std::monostate>(cell().value));
}

TEST(Cell, OfATextIsATextAndNoTruthValue) { EXPECT_EQ(std::get<std::string>(cell("ring").value), "ring"); }

TEST(Binary, IsInThePowersOfTwoThatComeOutEven) {
  EXPECT_EQ(binary(Bytes(25 << 20)), "25 MiB");
  EXPECT_EQ(binary(Bytes(64 << 10)), "64 KiB");
  EXPECT_EQ(binary(Bytes(std::int64_t{3} << 30)), "3 GiB");
  EXPECT_EQ(binary(Bytes(1536)), "1.536 kB");
  EXPECT_EQ(binary(Bytes(25'000'000)), "25 MB");
  EXPECT_EQ(binary(Bytes(0)), "0 B");
}

}  // namespace
}  // namespace annulet::plan
