#pragma once
// Shared by the tests of nn: repeatable inputs, and the central-difference check of a gradient.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "annulet/base/random.hpp"
#include "nn/layer.hpp"

namespace annulet::nn {

// Numbers in [-1, 1) that no test relies on.
template <class T = double>
std::vector<T> noise(Elements n, std::uint64_t seed = 1) {
  const RandomStream stream(seed, "noise");
  std::vector<T> values(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(stream.uniform(i, -1, 1));
  return values;
}

// Expects gradient[i] to be d(function)/d(variables[i]) for every i.
template <class Function>
void expect_gradient(std::span<double> variables, std::span<const double> gradient, Function function) {
  ASSERT_EQ(variables.size(), gradient.size());
  constexpr double step = 1e-5;
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const double middle = variables[i];
    variables[i] = middle + step;
    const double above = function();
    variables[i] = middle - step;
    const double below = function();
    variables[i] = middle;
    const double difference = (above - below) / (2 * step);
    EXPECT_FALSE(!(std::abs(gradient[i] - difference) <= 1e-8 * (1 + std::abs(difference))))
        << "element " << i << ": " << gradient[i] << ", by differences " << difference;
  }
}

// scale * sin(0.37 i + phase): inputs that other programs can make too.
inline std::vector<double> wave(Elements n, double phase, double scale = 1) {
  std::vector<double> values;
  for (Elements i = 0; i < n; ++i) values.push_back(scale * std::sin(0.37 * static_cast<double>(i) + phase));
  return values;
}

inline void expect_near(std::span<const double> values, const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_FALSE(!(std::abs(values[i] - expected[i]) <= tolerance)) << i << ": " << values[i] << ", " << expected[i];
  }
}

// Checks all gradients of a layer for B samples of one row (or that many rows of sequences of `time`): of its weights,
// and of its input.
inline void check_layer(Layer<double>& layer, Elements samples, Elements inputs, Elements time = 1) {
  const Layout layout(layer.tensors());
  layer.bind(layout);
  std::vector<double> weights = noise(layout.size(), 2), gradients(weights.size(), NAN);
  std::vector<double> x = noise(samples * inputs, 3), dx(x.size(), NAN);
  std::vector<double> dy = noise(samples * layer.outputs(), 4), y(dy.size(), NAN);
  const Matrix<double> x_view(x.data(), samples, inputs), dx_view(dx.data(), samples, inputs);
  const Matrix<double> y_view(y.data(), samples, layer.outputs()), dy_view(dy.data(), samples, layer.outputs());
  Progress progress;
  const Pass<double> pass{.progress = progress, .weights = weights, .gradients = gradients, .time = time};
  const auto objective = [&] {  // sum of y * dy, whose gradient by y is dy
    layer.forward(pass, x_view, y_view);
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += y[i] * dy[i];
    return sum;
  };
  objective();
  layer.backward(pass, x_view, y_view, dy_view, dx_view);
  expect_gradient(x, dx, objective);
  expect_gradient(weights, gradients, objective);
}

}  // namespace annulet::nn
