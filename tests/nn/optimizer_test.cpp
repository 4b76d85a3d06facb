#include "annulet/nn/optimizer.hpp"

#include <array>
#include <limits>

#include "annulet/base/error.hpp"
#include "support.hpp"

namespace annulet::nn {
namespace {

using Kind = OptimizerOptions::Kind;

Layout five() { return Layout({Tensor{"w", {5}, {}}}); }

// Five steps from w = (0.5, -1.25, 2, 0, -0.75) with gradients g[i] = sin(1 + i + 2 t).
template <class T>
std::vector<T> five_steps(const OptimizerOptions& options, double rate) {
  const auto optimizer = make_optimizer<T>(options, five());
  std::vector<T> w{T(0.5), T(-1.25), T(2), T(0), T(-0.75)}, g(5);
  for (int t = 0; t < 5; ++t) {
    for (int i = 0; i < 5; ++i) g[static_cast<std::size_t>(i)] = static_cast<T>(std::sin(1.0 + i + 2 * t));
    optimizer->begin_step();
    optimizer->update(0, w, g, {.learning_rate = rate});
  }
  return w;
}

template <class T>
void expect_weights(const OptimizerOptions& options, double rate, const std::array<double, 5>& expected,
                    double tolerance) {
  const auto w = five_steps<T>(options, rate);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_FALSE(!(std::abs(static_cast<double>(w[i]) - expected[i]) <= tolerance)) << i << ": " << w[i];
  }
}

void expect_in_both(const OptimizerOptions& options, double rate, const std::array<double, 5>& expected) {
  expect_weights<double>(options, rate, expected, 1e-13);
  expect_weights<float>(options, rate, expected, 1e-6);
}

// The numbers of these tests were made with PyTorch 1.13 in float64: torch.optim.SGD, Adam and AdamW with the options
// given here, for the weights and gradients of five_steps.
TEST(Sgd, GivesTheWeightsOfPyTorch) {
  expect_in_both({}, 0.1,
                 {0.390722819783483, -1.28184165690528, 2.07486893891934, 0.112745377577328, -0.703035763957334});
  expect_in_both({.momentum = 0.9}, 0.1,
                 {0.200707222392495, -1.41995636688059, 2.1156371437624, 0.294914397718248, -0.546951285520636});
  expect_in_both({.momentum = 0.9, .nesterov = true, .weight_decay = 0.01}, 0.1,
                 {0.115387896379981, -1.41222108177252, 2.14477164290766, 0.375838233893802, -0.509590719303547});
}

TEST(Adam, GivesTheWeightsOfPyTorch) {
  expect_in_both({.kind = Kind::adam, .beta1 = 0.8, .beta2 = 0.95, .weight_decay = 0.1}, 0.01,
                 {0.476659445850416, -1.25500946931895, 1.98692807298501, 0.0221986757999068, -0.733546240874944});
}

TEST(AdamW, GivesTheWeightsOfPyTorch) {
  expect_in_both({.kind = Kind::adamw, .weight_decay = 0.1}, 0.01,
                 {0.475163253496181, -1.25639609848612, 1.98779397206255, 0.0233759826482861, -0.732256989924214});
}

// A ZeRO shard is updated by the same call: slices give the bits of the whole, whatever their number and alignment.
TEST(Optimizer, UpdatesSlicesAsItUpdatesTheWhole) {
  const Layout layout({Tensor{"b", {37}, {}}, Tensor{"w", {50, 40}, {}}});
  for (const Kind kind : {Kind::sgd, Kind::adam, Kind::adamw}) {
    const OptimizerOptions options{
        .kind = kind, .momentum = 0.9, .weight_decay = 0.1, .decay_on = OptimizerOptions::DecayOn::matrices};
    const auto whole = make_optimizer<float>(options, layout), sliced = make_optimizer<float>(options, layout);
    auto w = noise<float>(2037, 1), v = w;
    const auto g = noise<float>(2037, 2);
    for (int t = 0; t < 3; ++t) {
      whole->begin_step();
      whole->update(0, w, g, {.learning_rate = 0.1});
      sliced->begin_step();
      for (std::size_t first = 0; first < v.size(); first += 291) {
        sliced->update(static_cast<Elements>(first), std::span(v).subspan(first, 291),
                       std::span<const float>(g).subspan(first, 291), {.learning_rate = 0.1});
      }
    }
    EXPECT_EQ(w, v);
  }
}

TEST(Optimizer, DecaysOnlyMatricesIfAskedTo) {
  const Layout layout({Tensor{"b", {2}, {}}, Tensor{"w", {1, 2}, {}}, Tensor{"c", {1}, {}}});
  const auto optimizer =
      make_optimizer<double>({.weight_decay = 0.5, .decay_on = OptimizerOptions::DecayOn::matrices}, layout);
  std::vector<double> w(5, 1);
  const std::vector<double> g(5, 0);
  optimizer->begin_step();
  optimizer->update(0, w, g, {.learning_rate = 0.1});
  EXPECT_EQ(w, (std::vector<double>{1, 1, 0.95, 0.95, 1}));
}

TEST(Optimizer, ScalesGradientsFirst) {
  const auto optimizer = make_optimizer<double>({.momentum = 0.5}, five());
  std::vector<double> w(5, 1);
  const std::vector<double> g(5, 8);
  optimizer->begin_step();
  optimizer->update(0, w, g, {.learning_rate = 0.5, .gradient_scale = 0.25});
  EXPECT_EQ(w, std::vector<double>(5, 0));
  EXPECT_EQ(optimizer->state().front().values.front(), 2);
}

TEST(Optimizer, ContinuesFromItsSavedState) {
  const OptimizerOptions options{.kind = Kind::adam};
  const auto first = make_optimizer<double>(options, five()), second = make_optimizer<double>(options, five());
  std::vector<double> w(5, 1);
  const auto g = noise(5);
  const auto step = [&](Optimizer<double>& optimizer, std::vector<double>& weights) {
    optimizer.begin_step();
    optimizer.update(0, weights, g, {.learning_rate = 0.1});
  };
  step(*first, w);
  const auto from = first->state(), to = second->state();
  for (std::size_t i = 0; i < from.size(); ++i) {
    EXPECT_EQ(from[i].name, to[i].name);
    std::ranges::copy(from[i].values, to[i].values.begin());
  }
  second->resume(first->steps());
  auto v = w;
  step(*first, w);
  step(*second, v);
  EXPECT_EQ(w, v);
}

TEST(Optimizer, RefusesOptionsOutOfRange) {
  const auto refused = [](const OptimizerOptions& options) {
    EXPECT_THROW(make_optimizer<float>(options, five()), InputError);
  };
  refused({.momentum = 1});
  refused({.nesterov = true});
  refused({.beta1 = -0.1});
  refused({.beta2 = std::numeric_limits<double>::quiet_NaN()});
  refused({.epsilon = -1});
  refused({.weight_decay = -0.01});
}

}  // namespace
}  // namespace annulet::nn
