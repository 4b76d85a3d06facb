#include "nn/attention.hpp"

#include <gmock/gmock.h>

#include "support.hpp"

namespace annulet::nn {
namespace {

// Attention with its scratch.
template <class T>
struct Trial {
  Trial(const AttentionOptions& options, Elements sequences)
      : scratch(options), layer(options, sequences * options.context, scratch) {}
  AttentionScratch<T> scratch;
  Attention<T> layer;
};

TEST(Attention, HasTheGradientOfItsForwardPass) {
  // One token, one head, odd widths; and sequences shorter than the context.
  for (const auto& [heads, width, time] : {std::tuple{1, 1, 1}, {1, 5, 4}, {3, 9, 7}, {2, 4, 1}, {2, 6, 13}}) {
    Trial<double> trial({heads, width, 13}, 2);
    check_layer(trial.layer, 2 * time, 3 * width, time);
  }
}

// Long enough that scores are computed again in several strips, and columns in several panels.
TEST(Attention, HasTheGradientOfItsForwardPassInStrips) {
  const AttentionOptions options{1, 2, 210};
  Trial<double> trial(options, 1);
  ASSERT_LT(trial.scratch.strip_rows, 210);
  check_layer(trial.layer, 210, 6, 210);
}

// Made with PyTorch 1.13: softmax(q k^T / sqrt(2), masked) v in float64.
TEST(Attention, GivesTheValuesOfPyTorch) {
  Trial<double> trial({2, 4, 5}, 2);
  const std::vector<double> x = wave(72, 1), dy = wave(24, 4);
  std::vector<double> y(24), dx(72);
  Progress progress;
  const Pass<double> pass{.progress = progress, .weights = {}, .time = 3};
  const Matrix<const double> x_view(x.data(), 6, 12), dy_view(dy.data(), 6, 4);
  const Matrix<double> y_view(y.data(), 6, 4), dx_view(dx.data(), 6, 12);
  trial.layer.forward(pass, x_view, y_view);
  trial.layer.backward(pass, x_view, y_view, dy_view, dx_view);
  expect_near(y,
              {-0.7300583608393,    -0.927775864644875,  -0.999923257564101, -0.936735728424079, -0.00463276062929424,
               -0.22427716774028,   -0.299716585554771,  -0.471185843790039, 0.146188684618777,  0.263283570706974,
               -0.043377950168246,  0.01640989459494,    -0.999999230697499, -0.93187807879679,  -0.737631600568625,
               -0.443550145589763,  -0.299316721219125,  -0.471408992877231, -0.49978310536102,  -0.693513893655353,
               -0.0558122428067914, 0.00371663887285467, -0.420966919338644, -0.265362425014451},
              1e-13);
  expect_near(std::span(dx).first(12),
              {0, 0, 0, 0, -0.125239429421773, 0.0389483567089462, 0.567136717205517, 0.598052068686289,
               -1.0082911043488, -0.977848167702347, -0.576716637768022, -0.33875731188065},
              1e-13);
  expect_near(std::span(dx).last(12),
              {0.155806998652017, -0.197495274398185, -0.0715943186999146, -0.110864102898553, 0.460123443505185,
               0.491984215144085, 0.0697171730716766, 0.0549865210879711, -0.415479125126594, -0.323055278232164,
               -0.0683179432419894, -0.00930699461548133},
              1e-13);
}

// Equal keys weigh all values alike, however large they are.
TEST(Attention, TakesTheMeanOfTheValuesOfRepeatedTokens) {
  Trial<float> trial({1, 2, 20}, 1);
  std::vector<float> x, y(40);
  for (int t = 0; t < 20; ++t) x.insert(x.end(), {900, -900, 900, -900, static_cast<float>(t), 1});
  Progress progress;
  trial.layer.forward({.progress = progress, .weights = {}, .time = 20}, Matrix<const float>(x.data(), 20, 6),
                      Matrix<float>(y.data(), 20, 2));
  for (std::size_t t = 0; t < 20; ++t) {
    EXPECT_NEAR(y[2 * t], static_cast<double>(t) / 2, 1e-5);
    EXPECT_NEAR(y[2 * t + 1], 1, 1e-6);
  }
}

TEST(Attention, ShowsANaNToTheTokensThatSeeIt) {
  Trial<float> trial({1, 8, 9}, 1);
  auto x = noise<float>(9 * 24);
  x[4 * 24 + 8] = NAN;  // in a key of token 4
  std::vector<float> y(72);
  Progress progress;
  trial.layer.forward({.progress = progress, .weights = {}, .time = 9}, Matrix<const float>(x.data(), 9, 24),
                      Matrix<float>(y.data(), 9, 8));
  for (std::size_t i = 4 * 8; i < y.size(); ++i) EXPECT_TRUE(std::isnan(y[i])) << i;
}

}  // namespace
}  // namespace annulet::nn
