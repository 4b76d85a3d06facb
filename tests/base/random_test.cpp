#include "annulet/base/random.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace annulet {
namespace {

// Known answers published with the Random123 library (kat_vectors, philox 4x32 10).
TEST(Philox, GivesThePublishedAnswers) {
  using Block = std::array<std::uint32_t, 4>;
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomStream, DependsOnSeedPurposeAndIndexOnly) {
  const RandomStream a(1, "layers.0.weight"), again(1, "layers.0.weight"), other(1, "layers.0.bias"),
      seed(2, "layers.0.weight");
  EXPECT_EQ(a.bits(7), again.bits(7));
  EXPECT_NE(a.bits(7), a.bits(8));
  EXPECT_NE(a.bits(7), other.bits(7));
  EXPECT_NE(a.bits(7), seed.bits(7));
}

TEST(RandomStream, HasTheMomentsOfItsDistributions) {
  const RandomStream stream(3, "moments");
  const int n = 100000;
  double sum = 0, squares = 0, normal_sum = 0, normal_squares = 0;
  for (int i = 0; i < n; ++i) {
    const auto index = static_cast<std::uint64_t>(i);
    const double u = stream.uniform(index, -1, 1), z = stream.normal(index);
    ASSERT_TRUE(u >= -1 && u < 1);
    ASSERT_TRUE(stream.below(index, 10) < 10);
    sum += u, squares += u * u, normal_sum += z, normal_squares += z * z;
  }
  EXPECT_NEAR(sum / n, 0, 0.01);
  EXPECT_NEAR(squares / n, 1.0 / 3, 0.01);
  EXPECT_NEAR(normal_sum / n, 0, 0.01);
  EXPECT_NEAR(normal_squares / n, 1, 0.02);
}

}  // namespace
}  // namespace annulet
