#include <limits>

#include "annulet/base/aligned.hpp"
#include "annulet/nn/optimizer.hpp"
#include "support.hpp"

namespace annulet::nn {
namespace {

TEST(SquaredNorm, AddsUpSquares) {
  const std::vector<double> pythagorean{3, 4};
  EXPECT_EQ(squared_norm<double>(pythagorean), 25);
  EXPECT_EQ(squared_norm<float>({}), 0);
  const std::vector<float> ones(1000, 1);
  EXPECT_EQ(squared_norm<float>(ones), 1000);
}

TEST(SquaredNorm, DoesNotDependOnCutsAtMultiplesOf64) {
  const auto values = noise<float>(64 * 9 + 17);
  const std::span<const float> all(values);
  for (std::size_t cut = 0; cut < all.size(); cut += 64) {
    EXPECT_EQ(squared_norm(all.subspan(cut), squared_norm(all.first(cut))), squared_norm(all)) << cut;
  }
}

// Eigen's sum() changes its bits with the alignment of its operand.
TEST(SquaredNorm, DoesNotDependOnAlignment) {
  const auto values = noise<float>(1000);
  for (std::size_t shift = 0; shift < 16; ++shift) {
    AlignedVector<float> moved(1000 + shift);
    std::ranges::copy(values, moved.begin() + static_cast<std::ptrdiff_t>(shift));
    EXPECT_EQ(squared_norm(std::span<const float>(moved).subspan(shift)), squared_norm<float>(values));
  }
}

TEST(SquaredNorm, ShowsANaNOrAnInfinityAnywhere) {
  for (std::size_t place = 0; place < 100; ++place) {
    auto values = noise<float>(100);
    values[place] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_TRUE(std::isnan(squared_norm<float>(values)));
    values[place] = -std::numeric_limits<float>::infinity();
    EXPECT_TRUE(std::isinf(squared_norm<float>(values)));
  }
}

}  // namespace
}  // namespace annulet::nn
