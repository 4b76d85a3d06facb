// The golden run: a 5-4-3 tanh network whose losses are known to twelve digits.
#include <array>

#include "annulet/nn/mlp.hpp"
#include "annulet/nn/optimizer.hpp"
#include "support.hpp"

namespace annulet::nn {
namespace {

using Losses = std::array<double, 6>;  // at steps 0 to 4, and after five steps

constexpr Losses kSgd{1.099041651057, 1.097686179836, 1.096407676130, 1.095198910121, 1.094053470671, 1.092965658560};
constexpr Losses kAdam{1.099041651057, 1.094765997536, 1.090931177998, 1.087411917979, 1.084067458883, 1.080781319785};

template <class T>
class Golden {
 public:
  explicit Golden(const OptimizerOptions& options)
      : model_(make_mlp<T>({.widths = {5, 4, 3}, .activation = Activation::tanh}, 8)),
        optimizer_(make_optimizer<T>(options, model_->layout())),
        weights_(static_cast<std::size_t>(model_->layout().size())),
        gradients_(weights_.size(), T(NAN)) {
    for (int n = 0; n < 8; ++n) {
      for (int i = 0; i < 5; ++i) features_.push_back(static_cast<T>(std::sin(0.1 * (5 * n + i))));
      labels_.push_back(n % 3);
    }
    T* first = weights("layers.0.weight");
    for (int i = 0; i < 5; ++i) {
      for (int j = 0; j < 4; ++j) first[j * 5 + i] = static_cast<T>(0.5 * std::cos(0.3 * (4 * i + j)));
    }
    T* second = weights("layers.1.weight");
    for (int j = 0; j < 4; ++j) {
      for (int k = 0; k < 3; ++k) second[k * 4 + j] = static_cast<T>(0.5 * std::sin(0.7 * (3 * j + k)));
    }
  }

  // Mean loss, with the gradients of the mean, of the 8 samples in parts of the given sizes.
  double pass(const std::vector<std::size_t>& parts) {
    double loss = 0;
    std::size_t first = 0;
    for (const std::size_t count : parts) {
      const Batch<T> batch{.samples = static_cast<Elements>(count),
                           .features = std::span<const T>(features_).subspan(5 * first, 5 * count),
                           .labels = std::span<const std::int32_t>(labels_).subspan(first, count)};
      Progress progress;
      loss += model_->forward(batch, weights_, Mode::train, progress).loss;
      model_->backward(batch, weights_, gradients_, 1.0 / 8, first == 0 ? Accumulate::overwrite : Accumulate::add,
                       progress);
      first += count;
    }
    return loss / 8;
  }

  void update(double rate) {
    optimizer_->begin_step();
    optimizer_->update(0, weights_, gradients_, {.learning_rate = rate});
  }

  double gradient_norm() const { return std::sqrt(squared_norm<T>(gradients_)); }

 private:
  T* weights(const char* name) { return weights_.data() + model_->layout().find(name)->first; }

  std::unique_ptr<Model<T>> model_;
  std::unique_ptr<Optimizer<T>> optimizer_;
  std::vector<T> weights_, gradients_, features_;
  std::vector<std::int32_t> labels_;
};

struct Run {
  OptimizerOptions options;
  double rate;
  Losses losses;
};

const std::array kRuns{Run{{}, 0.1, kSgd}, Run{{.kind = OptimizerOptions::Kind::adam}, 0.01, kAdam}};

template <class T>
void expect_golden(const std::vector<std::size_t>& parts, double tolerance) {
  for (const Run& run : kRuns) {
    Golden<T> golden(run.options);
    for (std::size_t t = 0; t < run.losses.size(); ++t) {
      const double loss = golden.pass(parts);
      EXPECT_FALSE(!(std::abs(loss - run.losses[t]) <= tolerance)) << "step " << t << ": " << loss;
      if (t == 0) {
        const double norm = golden.gradient_norm();
        EXPECT_FALSE(!(std::abs(norm - 0.117289349874) <= tolerance)) << norm;
      }
      golden.update(run.rate);
    }
  }
}

TEST(GoldenRun, GivesTheKnownLossesInDouble) { expect_golden<double>({8}, 1e-10); }
TEST(GoldenRun, GivesTheKnownLossesInFloat) { expect_golden<float>({8}, 1e-6); }

// The mean of the means of 5 and of 3 samples would be 1.099696335633 (pytorch#37359).
TEST(GoldenRun, GivesTheSameLossesInUnequalParts) {
  expect_golden<double>({5, 3}, 1e-10);
  expect_golden<double>({1, 0, 7}, 1e-10);
  expect_golden<float>({5, 3}, 1e-6);
}

}  // namespace
}  // namespace annulet::nn
