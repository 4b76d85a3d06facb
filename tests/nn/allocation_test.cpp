#include "annulet/nn/gpt.hpp"
#include "annulet/nn/mlp.hpp"
#include "annulet/nn/optimizer.hpp"
#include "support.hpp"
#include "support/allocations.hpp"

namespace annulet::nn {
namespace {

template <class T>
long allocations_of_a_step(Elements samples, OptimizerOptions::Kind kind) {
  const auto model =
      make_mlp<T>({.widths = {784, 1024, 1024, 10}, .activation = Activation::relu, .dropout = 0.1}, samples);
  const auto optimizer = make_optimizer<T>({.kind = kind, .momentum = 0.9}, model->layout());
  std::vector<T> weights = noise<T>(model->layout().size()), gradients(weights.size());
  const std::vector<T> features = noise<T>(samples * 784);
  const std::vector<std::int32_t> labels(static_cast<std::size_t>(samples), 3);
  const Batch<T> batch{.samples = samples, .features = features, .labels = labels};
  Progress progress;
  const long before = test::allocations();
  model->forward(batch, weights, Mode::train, progress);
  model->backward(batch, weights, gradients, 1, Accumulate::overwrite, progress);
  optimizer->begin_step();
  optimizer->update(0, weights, gradients, {.learning_rate = 0.1, .gradient_scale = squared_norm<T>(gradients)});
  return test::allocations() - before;
}

TEST(Allocation, IsSeenByTheCounter) {
  const long before = test::allocations();
  const std::vector<float> vector(1000);
  EXPECT_GT(test::allocations(), before);
}

TEST(Allocation, DoesNotHappenInAStep) {
  EXPECT_EQ(allocations_of_a_step<float>(64, OptimizerOptions::Kind::sgd), 0);
  EXPECT_EQ(allocations_of_a_step<double>(64, OptimizerOptions::Kind::adam), 0);
  EXPECT_EQ(allocations_of_a_step<float>(1, OptimizerOptions::Kind::adamw), 0);
  EXPECT_EQ(allocations_of_a_step<double>(1, OptimizerOptions::Kind::sgd), 0);
  EXPECT_EQ(allocations_of_a_step<float>(300, OptimizerOptions::Kind::sgd), 0);
}

TEST(Allocation, DoesNotHappenInAStepOfAGpt) {
  const auto model = make_gpt<float>({.vocabulary = 10, .context = 16, .dropout = 0.1, .recompute = true}, 4);
  const std::vector<float> weights = noise<float>(model->layout().size());
  std::vector<float> gradients(weights.size());
  const std::vector<std::int32_t> tokens(64, 3);
  const Batch<float> batch{.samples = 4, .features = {}, .labels = tokens, .tokens = tokens};
  Progress progress;
  const long before = test::allocations();
  model->forward(batch, weights, Mode::train, progress);
  model->backward(batch, weights, gradients, 1, Accumulate::overwrite, progress);
  EXPECT_EQ(test::allocations() - before, 0);
}

}  // namespace
}  // namespace annulet::nn
