#include "nn/layer_norm.hpp"

#include "support.hpp"

namespace annulet::nn {
namespace {

TEST(LayerNorm, HasTheGradientsOfItsForwardPass) {
  for (const Elements width : {1, 2, 7, 8, 19}) {
    LayerNorm<double> layer("ln", width, 3);
    check_layer(layer, 3, width);
  }
}

// Made with PyTorch 1.13: torch.nn.functional.layer_norm in float64.
TEST(LayerNorm, GivesTheValuesOfPyTorch) {
  LayerNorm<double> layer("ln", 5, 2);
  const Layout layout(layer.tensors());
  layer.bind(layout);
  std::vector<double> weights = wave(5, 3), gradients(10), y(10), dx(10);  // bias, then weight
  for (const double w : wave(5, 2)) weights.push_back(w);
  const std::vector<double> x = wave(10, 1), dy = wave(10, 4);
  Progress progress;
  const Pass<double> pass{.progress = progress, .weights = weights, .gradients = gradients};
  const Matrix<const double> x_view(x.data(), 2, 5), dy_view(dy.data(), 2, 5);
  const Matrix<double> y_view(y.data(), 2, 5), dx_view(dx.data(), 2, 5);
  layer.forward(pass, x_view, y_view);
  layer.backward(pass, x_view, y_view, dy_view, dx_view);
  expect_near(y,
              {0.0436526609720628, 0.415027645784119, -0.186883299285821, -0.823468799577755, -0.378158959666216,
               1.51745169953256, 0.247478849368075, -0.6142011649426, -0.849449479720802, -0.555833213844259},
              1e-13);
  expect_near(dx,
              {-3.05384657136555, -0.785937152971215, 1.27358666982598, 2.08058871624627, 0.48560833826452,
               -0.416221526290511, 0.247999494014654, 0.514996028603324, 0.205360209919019, -0.552134206246485},
              1e-13);
  expect_near(std::span(gradients).last(5),
              {-0.554242181202638, -0.909458372620573, -1.00199760691703, -0.519969115200111, 0.201262622618397},
              1e-13);
}

TEST(LayerNorm, GivesEveryRowItsBitsWhereverItStands) {
  LayerNorm<float> layer("ln", 37, 4);
  const Layout layout(layer.tensors());
  layer.bind(layout);
  const auto weights = noise<float>(74, 2), row = noise<float>(37, 3);
  Progress progress;
  const Pass<float> pass{.progress = progress, .weights = weights};
  std::vector<float> x, y(4 * 37);
  for (int r = 0; r < 4; ++r) x.insert(x.end(), row.begin(), row.end());
  layer.forward(pass, Matrix<const float>(x.data(), 4, 37), Matrix<float>(y.data(), 4, 37));
  for (std::size_t i = 37; i < y.size(); ++i) ASSERT_EQ(y[i], y[i % 37]);
}

}  // namespace
}  // namespace annulet::nn
