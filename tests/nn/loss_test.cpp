#include "nn/loss.hpp"

#include <limits>

#include "annulet/base/error.hpp"
#include "support.hpp"

namespace annulet::nn {
namespace {

// Checks the gradient of a loss over 3 samples of 4 outputs.
void check_loss(Loss kind, const Targets<double>& targets) {
  const auto loss = make_loss<double>(kind, 4, 3);
  auto outputs = noise(12, 5);
  std::vector<double> gradient(12, NAN);
  const Matrix<const double> view(outputs.data(), 3, 4);
  loss->forward(targets, view);
  loss->backward(targets, view, 0.7, Matrix<double>(gradient.data(), 3, 4));
  expect_gradient(outputs, gradient, [&] { return 0.7 * loss->forward(targets, view).loss; });
}

LossSums cross_entropy(const std::vector<float>& row, std::int32_t label) {
  const std::vector<std::int32_t> labels{label};
  const auto n = static_cast<Elements>(row.size());
  return make_loss<float>(Loss::cross_entropy, n, 1)->forward({labels, {}}, Matrix<const float>(row.data(), 1, n));
}

TEST(Loss, HasTheGradientOfItsForwardPass) {
  const std::vector<std::int32_t> labels{2, 0, 3};
  const auto values = noise(12, 6);
  check_loss(Loss::cross_entropy, {labels, {}});
  check_loss(Loss::mse, {{}, values});
}

TEST(Loss, IsTheMeanOverASamplesOutputsOfTheSquaredError) {
  const std::vector<double> outputs{1, 2, 3, 4}, values{0, 0, 3, 2};
  const auto sums =
      make_loss<double>(Loss::mse, 2, 2)->forward({{}, values}, Matrix<const double>(outputs.data(), 2, 2));
  EXPECT_DOUBLE_EQ(sums.loss, (1 + 4) / 2.0 + (0 + 4) / 2.0);
  EXPECT_EQ(sums.targets, 2);
}

TEST(CrossEntropy, LeavesOutRowsWithoutALabel) {
  const std::vector<std::int32_t> labels{2, kNoLabel, 3};
  check_loss(Loss::cross_entropy, {labels, {}});
  const auto outputs = noise(12, 5);
  const auto loss = make_loss<double>(Loss::cross_entropy, 4, 3);
  const auto sums = loss->forward({labels, {}}, Matrix<const double>(outputs.data(), 3, 4));
  EXPECT_EQ(sums.targets, 2);
}

TEST(CrossEntropy, CountsSamplesWhoseLargestOutputIsTheLabel) {
  EXPECT_EQ(cross_entropy({0, 2, 1}, 1).correct, 1);
  EXPECT_EQ(cross_entropy({0, 2, 1}, 2).correct, 0);
}

TEST(CrossEntropy, StaysFiniteForLargeOutputs) {
  EXPECT_FALSE(!(std::abs(cross_entropy({1000, 0, -1000}, 1).loss - 1000) <= 1e-3));
  EXPECT_FALSE(!(std::abs(cross_entropy({1000, 0, -1000}, 0).loss) <= 1e-6));
}

TEST(CrossEntropy, GivesNaNWhereverANaNStands) {
  for (std::size_t place = 0; place < 3; ++place) {
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      std::vector<float> row{0.5F, 2, 1};
      row[place] = bad;
      const LossSums sums = cross_entropy(row, 1);
      EXPECT_TRUE(std::isnan(sums.loss)) << bad << " at " << place;
    }
  }
}

TEST(CrossEntropy, RefusesALabelThatIsNoOutput) {
  EXPECT_THROW(cross_entropy({0, 1, 2}, 3), ContractError);
  EXPECT_THROW(cross_entropy({0, 1, 2}, -1), ContractError);
}

}  // namespace
}  // namespace annulet::nn
