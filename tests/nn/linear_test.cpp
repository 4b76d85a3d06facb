#include "nn/linear.hpp"

#include "nn/product.hpp"
#include "support.hpp"

namespace annulet::nn {
namespace {

TEST(Linear, HasTheGradientsOfItsForwardPass) {
  for (const Elements samples : {1, 2, 7}) {
    Linear<double> layer("layers.0", 5, 3);
    check_layer(layer, samples, 5);
  }
  Linear<double> narrow("layers.0", 1, 1);
  check_layer(narrow, 3, 1);
}

// More samples, inputs and outputs than one panel takes, none of them a multiple of anything.
TEST(Linear, GivesTheSameProductsInPanelsAsByDefinition) {
  const Elements samples = 523, in = 301, out = 311;
  const auto x = noise(samples * in, 1), w = noise(out * in, 2), bias = noise(out, 3), dy = noise(samples * out, 4);
  std::vector<double> y(dy.size(), NAN), dx(x.size(), NAN), dw(w.size(), NAN);
  const Matrix<const double> x_view(x.data(), samples, in), w_view(w.data(), out, in), dy_view(dy.data(), samples, out);
  Progress progress;
  multiply_forward(x_view, w_view, bias.data(), Matrix<double>(y.data(), samples, out), progress);
  multiply_backward(dy_view, w_view, Matrix<double>(dx.data(), samples, in), progress);
  multiply_outer(dy_view, x_view, Matrix<double>(dw.data(), out, in), Accumulate::overwrite, progress);
  const auto at = [](const std::vector<double>& m, Elements i) { return m[static_cast<std::size_t>(i)]; };
  for (Elements k = 0; k < 300; ++k) {  // a scatter of places that meets every panel
    const Elements s = k * 37 % samples, i = k * 53 % in, o = k * 71 % out;
    double y_so = at(bias, o), dx_si = 0, dw_oi = 0;
    for (Elements j = 0; j < in; ++j) y_so += at(x, s * in + j) * at(w, o * in + j);
    for (Elements j = 0; j < out; ++j) dx_si += at(dy, s * out + j) * at(w, j * in + i);
    for (Elements j = 0; j < samples; ++j) dw_oi += at(dy, j * out + o) * at(x, j * in + i);
    ASSERT_FALSE(!(std::abs(at(y, s * out + o) - y_so) <= 1e-11));
    ASSERT_FALSE(!(std::abs(at(dx, s * in + i) - dx_si) <= 1e-11));
    ASSERT_FALSE(!(std::abs(at(dw, o * in + i) - dw_oi) <= 1e-11));
  }
}

TEST(Linear, LetsCommunicationMoveInsideABigProduct) {
  struct Pulses final : Progress {
    int count = 0;
    void pulse() override { ++count; }
  };
  const Elements samples = 64, width = 1024;  // 134 MFLOP a product
  const auto x = noise<float>(samples * width), w = noise<float>(width * width);
  std::vector<float> y(x.size()), dw(w.size());
  const Matrix<const float> x_view(x.data(), samples, width), w_view(w.data(), width, width);
  const Matrix<float> y_view(y.data(), samples, width);
  Pulses forward, backward, outer;
  multiply_forward(x_view, w_view, w.data(), y_view, forward);
  multiply_backward(x_view, w_view, y_view, backward);
  multiply_outer(x_view, x_view, Matrix<float>(dw.data(), width, width), Accumulate::overwrite, outer);
  EXPECT_GE(forward.count, 4);
  EXPECT_GE(backward.count, 4);
  EXPECT_GE(outer.count, 4);
}

}  // namespace
}  // namespace annulet::nn
