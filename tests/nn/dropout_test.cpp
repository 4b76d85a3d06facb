#include "nn/dropout.hpp"

#include "support.hpp"

namespace annulet::nn {
namespace {

constexpr Elements kUnits = 1000;

// The outputs for inputs of 1, which are the mask.
std::vector<double> mask(Elements samples, std::uint64_t first_draw, Mode mode = Mode::train,
                         const char* name = "layers.0") {
  std::vector<double> kept(static_cast<std::size_t>(samples * kUnits));
  Dropout<double> layer({name, 0.25, 7}, kUnits, kept);
  const std::vector<double> ones(static_cast<std::size_t>(samples * kUnits), 1);
  std::vector<double> y(ones.size());
  Progress progress;
  layer.forward({.progress = progress, .weights = {}, .mode = mode, .first_draw = first_draw},
                Matrix<const double>(ones.data(), samples, kUnits), Matrix<double>(y.data(), samples, kUnits));
  return y;
}

double shared_zeros(const std::vector<double>& a, const std::vector<double>& b) {
  double count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) count += a[i] == 0 && b[i] == 0 ? 1 : 0;
  return count / static_cast<double>(a.size());
}

TEST(Dropout, HasTheGradientOfItsForwardPass) {
  std::vector<double> kept(20);
  Dropout<double> layer({"layers.0", 0.5, 3}, 5, kept);
  check_layer(layer, 4, 5);
}

TEST(Dropout, DoesNotDependOnHowSamplesAreSplitIntoBatches) {
  std::vector<double> joined = mask(5, 40);
  const auto rest = mask(3, 45);
  joined.insert(joined.end(), rest.begin(), rest.end());
  EXPECT_EQ(mask(8, 40), joined);
}

TEST(Dropout, DropsTheShareAskedForAndScalesTheRest) {
  double zeros = 0, sum = 0;
  for (const double value : mask(100, 0)) {
    ASSERT_TRUE(value == 0 || value == 1 / 0.75);
    zeros += value == 0 ? 1 : 0;
    sum += value;
  }
  EXPECT_NEAR(zeros / (100 * kUnits), 0.25, 0.005);
  EXPECT_NEAR(sum / (100 * kUnits), 1, 0.01);
}

// pytorch users met ranks that all drew the same mask (accelerate#114): other samples, other masks; 0.25^2 in common.
TEST(Dropout, DrawsOtherMasksForOtherSamplesAndLayers) {
  EXPECT_NEAR(shared_zeros(mask(100, 0), mask(100, 100)), 0.0625, 0.004);
  EXPECT_NEAR(shared_zeros(mask(100, 0), mask(100, 0, Mode::train, "layers.1")), 0.0625, 0.004);
}

TEST(Dropout, PassesItsInputThroughInEvaluation) {
  for (const double value : mask(3, 0, Mode::evaluate)) ASSERT_EQ(value, 1);
}

}  // namespace
}  // namespace annulet::nn
