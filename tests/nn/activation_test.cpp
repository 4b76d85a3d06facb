#include "nn/activation.hpp"

#include <array>
#include <limits>

#include "support.hpp"

namespace annulet::nn {
namespace {

constexpr std::array kAll{Activation::relu, Activation::gelu, Activation::gelu_tanh, Activation::tanh};

template <class T>
std::vector<T> apply(Activation kind, std::vector<T> x) {
  std::vector<T> y(x.size());
  const auto n = static_cast<Elements>(x.size());
  Progress progress;
  ActivationLayer<T>(kind, n).forward({.progress = progress, .weights = {}}, Matrix<const T>(x.data(), 1, n),
                                      Matrix<T>(y.data(), 1, n));
  return y;
}

template <class T>
void expect_values(Activation kind, const std::vector<double>& expected, double tolerance) {
  const auto y = apply<T>(kind, {-6, -3, -1, -0.5, 0, 0.25, 1, 2.5, 6});
  for (std::size_t i = 0; i < y.size(); ++i) {
    EXPECT_FALSE(!(std::abs(static_cast<double>(y[i]) - expected[i]) <= tolerance)) << i << ": " << y[i];
  }
}

TEST(Activation, HasTheGradientOfItsForwardPass) {
  for (const Activation kind : kAll) {
    ActivationLayer<double> layer(kind, 7);
    check_layer(layer, 3, 7);
  }
}

// Made with PyTorch 1.13: torch.nn.functional.gelu(x) and gelu(x, approximate='tanh') in float64.
TEST(Activation, GivesTheGeluOfPyTorch) {
  const std::vector<double> by_erf{
      -5.91952586947997e-09, -0.00404969409489031, -0.158655253931457, -0.154268769362993, 0,
      0.149676581420731,     0.841344746068543,    2.48447583668556,   5.99999999408047};
  const std::vector<double> by_tanh{
      -8.43964897967453e-11, -0.00363739208177299, -0.158808009391723, -0.154285990174856, 0,
      0.149675350701685,     0.841191990608277,    2.48491573391,      5.9999999999156};
  expect_values<double>(Activation::gelu, by_erf, 1e-14);
  expect_values<double>(Activation::gelu_tanh, by_tanh, 1e-14);
  expect_values<float>(Activation::gelu, by_erf, 1e-6);
  expect_values<float>(Activation::gelu_tanh, by_tanh, 1e-6);
}

TEST(Activation, LetsNaNThrough) {
  for (const Activation kind : kAll) {
    const auto y = apply<float>(kind, std::vector<float>(19, std::numeric_limits<float>::quiet_NaN()));
    for (const float value : y) EXPECT_TRUE(std::isnan(value));
  }
}

}  // namespace
}  // namespace annulet::nn
