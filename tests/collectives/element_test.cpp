#include "annulet/collectives/element.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "annulet/base/error.hpp"

namespace annulet::collectives {
namespace {

float through_bfloat16(float value) {
  round_through_wire(over_bfloat16(sum_of<float>()), std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

TEST(Bfloat16, KeepsWhatHasEightBits) {
  for (const float value : {0.0F, -0.0F, 1.0F, -253.0F, 0x1.fep100F, 0x1p-126F, 0x1p-133F}) {
    EXPECT_EQ(through_bfloat16(value), value);
    EXPECT_EQ(std::signbit(through_bfloat16(value)), std::signbit(value));
  }
  EXPECT_EQ(through_bfloat16(INFINITY), INFINITY);
}

TEST(Bfloat16, RoundsToTheNearestAndTiesToEven) {
  EXPECT_EQ(through_bfloat16(1 + 0x1p-8F), 1.0F);                 // tie, down to even
  EXPECT_EQ(through_bfloat16(1 + 3 * 0x1p-8F), 1 + 4 * 0x1p-8F);  // tie, up to even
  EXPECT_EQ(through_bfloat16(1 + 1.01F * 0x1p-8F), 1 + 0x1p-7F);  // nearer above
  EXPECT_EQ(through_bfloat16(-1 - 0.99F * 0x1p-8F), -1.0F);       // nearer below
  EXPECT_EQ(through_bfloat16(std::numeric_limits<float>::max()), INFINITY);
}

TEST(Bfloat16, KeepsNaN) {
  EXPECT_TRUE(std::isnan(through_bfloat16(NAN)));
  EXPECT_TRUE(std::isnan(through_bfloat16(std::bit_cast<float>(0x7f800001U))));  // one whose upper half is infinity's
  EXPECT_TRUE(std::isnan(through_bfloat16(std::bit_cast<float>(0xffffffffU))));
}

TEST(Bfloat16, IsHalfOfAFloatOnly) { EXPECT_THROW(over_bfloat16(sum_of<double>()), ContractError); }

TEST(RoundThroughWire, TakesVectorsOfAnyLength) {
  for (const std::size_t n : {0U, 1U, 1023U, 1024U, 3000U}) {
    std::vector<float> values(n, 1 + 0x1p-9F);
    round_through_wire(over_bfloat16(sum_of<float>()), std::as_writable_bytes(std::span(values)));
    EXPECT_EQ(values, std::vector<float>(n, 1.0F));
  }
  std::vector<float> untouched(5, 1 + 0x1p-9F);
  round_through_wire(sum_of<float>(), std::as_writable_bytes(std::span(untouched)));
  EXPECT_EQ(untouched, std::vector<float>(5, 1 + 0x1p-9F));
}

TEST(MaximumOf, KeepsTheLarger) {
  std::vector<std::int32_t> to{-5, 7, 0}, from{-9, 8, 0};
  maximum_of<std::int32_t>().combine(std::as_writable_bytes(std::span(to)).data(),
                                     std::as_bytes(std::span(from)).data(), 3);
  EXPECT_EQ(to, (std::vector<std::int32_t>{-5, 8, 0}));
}

}  // namespace
}  // namespace annulet::collectives
