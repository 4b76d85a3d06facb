#include "annulet/nn/mlp.hpp"

#include <gmock/gmock.h>

#include "annulet/base/error.hpp"
#include "support.hpp"

namespace annulet::nn {
namespace {

// A model with weights and a batch for it.
struct Trial {
  Trial(const MlpOptions& options, Elements samples)
      : model(make_mlp<double>(options, std::max<Elements>(samples, 1))),
        weights(noise(model->layout().size(), 1)),
        gradients(weights.size(), NAN),
        features(noise(samples * options.widths.front(), 2)),
        values(options.loss == Loss::mse ? noise(samples * options.widths.back(), 3) : std::vector<double>{}) {
    if (options.loss == Loss::mse) return;
    for (Elements n = 0; n < samples; ++n) labels.push_back(static_cast<std::int32_t>(n % options.widths.back()));
  }

  Batch<double> batch(std::size_t first, std::size_t count) const {
    const auto rows = [&](const std::vector<double>& all, Elements width) {
      const auto w = all.empty() ? 0 : static_cast<std::size_t>(width);
      return std::span(all).subspan(first * w, count * w);
    };
    const Elements inputs = labels.empty() && values.empty() ? 0 : static_cast<Elements>(features.size() / samples());
    const Elements outputs = values.empty() ? 0 : static_cast<Elements>(values.size() / samples());
    return {.samples = static_cast<Elements>(count),
            .features = rows(features, inputs),
            .labels = labels.empty() ? std::span<const std::int32_t>() : std::span(labels).subspan(first, count),
            .values = rows(values, outputs),
            .first_draw = first};
  }

  double forward(std::size_t first, std::size_t count) {
    return model->forward(batch(first, count), weights, Mode::train, progress).loss;
  }

  void backward(std::size_t first, std::size_t count, Accumulate accumulate) {
    model->backward(batch(first, count), weights, gradients, 0.3, accumulate, progress);
  }

  std::size_t samples() const { return std::max(labels.size(), count_of_values()); }
  std::size_t count_of_values() const { return values.empty() ? 0 : values.size() / outputs(); }
  std::size_t outputs() const { return static_cast<std::size_t>(model->layout().tensors().front().count); }

  std::unique_ptr<Model<double>> model;
  std::vector<double> weights, gradients, features, values;
  std::vector<std::int32_t> labels;
  Progress progress;
};

void check_mlp(const MlpOptions& options, Elements samples) {
  Trial trial(options, samples);
  const auto count = static_cast<std::size_t>(samples);
  trial.forward(0, count);
  trial.backward(0, count, Accumulate::overwrite);
  expect_gradient(trial.weights, trial.gradients, [&] { return 0.3 * trial.forward(0, count); });
}

TEST(Mlp, HasTheGradientOfItsLoss) {
  for (const Activation activation : {Activation::relu, Activation::gelu, Activation::gelu_tanh, Activation::tanh}) {
    for (const Loss loss : {Loss::cross_entropy, Loss::mse}) {
      check_mlp({.widths = {5, 7, 3, 4}, .activation = activation, .loss = loss}, 6);
      check_mlp({.widths = {3, 5, 2}, .activation = activation, .dropout = 0.4, .loss = loss}, 1);
      check_mlp({.widths = {4, 3}, .activation = activation, .loss = loss}, 2);
    }
  }
}

TEST(Mlp, AddsUpTheGradientsOfPartsToThoseOfTheBatch) {
  const MlpOptions options{.widths = {5, 9, 3}, .activation = Activation::tanh, .dropout = 0.3};
  Trial whole(options, 8), parts(options, 8);
  const double loss = whole.forward(0, 8);
  whole.backward(0, 8, Accumulate::overwrite);
  double sum = parts.forward(0, 5);
  parts.backward(0, 5, Accumulate::overwrite);
  sum += parts.forward(5, 3);
  parts.backward(5, 3, Accumulate::add);
  EXPECT_NEAR(sum, loss, 1e-12);
  for (std::size_t i = 0; i < whole.gradients.size(); ++i) {
    ASSERT_FALSE(!(std::abs(whole.gradients[i] - parts.gradients[i]) <= 1e-12)) << i;
  }
}

TEST(Mlp, GivesZeroGradientsForAnEmptyBatch) {
  for (const Loss loss : {Loss::cross_entropy, Loss::mse}) {
    Trial trial({.widths = {5, 4, 3}, .loss = loss}, 0);
    EXPECT_EQ(trial.forward(0, 0), 0);
    trial.backward(0, 0, Accumulate::overwrite);
    EXPECT_THAT(trial.gradients, testing::Each(0.0));
    trial.gradients.assign(trial.gradients.size(), 5);
    trial.backward(0, 0, Accumulate::add);
    EXPECT_THAT(trial.gradients, testing::Each(5.0));
  }
}

TEST(Mlp, ReportsEachGradientOnceInLayoutOrderWhenItIsFinal) {
  struct Recorder final : Progress {
    std::vector<std::string> seen;
    std::vector<double> last_element;
    const Trial* trial = nullptr;
    void gradient_ready(std::size_t index) override {
      const Tensor& tensor = trial->model->layout().tensors()[index];
      seen.push_back(tensor.name);
      last_element.push_back(trial->gradients[static_cast<std::size_t>(tensor.first + tensor.count - 1)]);
    }
  };
  for (const Elements samples : {0, 3}) {
    Trial trial({.widths = {5, 4, 3, 2}, .activation = Activation::tanh}, samples);
    Recorder recorder;
    recorder.trial = &trial;
    const auto batch = trial.batch(0, static_cast<std::size_t>(samples));
    trial.model->forward(batch, trial.weights, Mode::train, recorder);
    trial.model->backward(batch, trial.weights, trial.gradients, 1, Accumulate::overwrite, recorder);
    EXPECT_THAT(recorder.seen, testing::ElementsAre("layers.2.bias", "layers.2.weight", "layers.1.bias",
                                                    "layers.1.weight", "layers.0.bias", "layers.0.weight"));
    for (std::size_t i = 0; i < recorder.seen.size(); ++i) {
      const Tensor& tensor = trial.model->layout().tensors()[i];
      EXPECT_EQ(recorder.last_element[i], trial.gradients[static_cast<std::size_t>(tensor.first + tensor.count - 1)]);
    }
  }
}

TEST(Mlp, ShowsANaNOfItsWeightsInTheLoss) {
  Trial trial({.widths = {5, 4, 3}}, 2);
  trial.weights.back() = NAN;  // of the first layer, before a ReLU
  EXPECT_TRUE(std::isnan(trial.forward(0, 2)));
}

TEST(Mlp, LooksTheSameWhetherOrNotSomebodyListens) {
  struct Listener final : Progress {
    int pulses = 0;
    void pulse() override { ++pulses; }
  };
  Trial quiet({.widths = {300, 300, 3}}, 100), heard({.widths = {300, 300, 3}}, 100);
  quiet.forward(0, 100);
  quiet.backward(0, 100, Accumulate::overwrite);
  Listener listener;
  heard.model->forward(heard.batch(0, 100), heard.weights, Mode::train, listener);
  heard.model->backward(heard.batch(0, 100), heard.weights, heard.gradients, 0.3, Accumulate::overwrite, listener);
  EXPECT_GT(listener.pulses, 0);
  EXPECT_EQ(quiet.gradients, heard.gradients);
}

TEST(Mlp, DescribesItself) {
  const auto model = make_mlp<float>({.widths = {784, 1024, 1024, 10}}, 1);
  EXPECT_EQ(model->describe(), "mlp 784-1024-1024-10 relu, 1,863,690 parameters");
  EXPECT_EQ(make_mlp<float>({.widths = {2, 3, 1}, .dropout = 0.5}, 1)->describe(),
            "mlp 2-3-1 relu dropout 0.5, 13 parameters");
  EXPECT_EQ(model->layout().find("layers.0.weight")->shape, (std::vector<Elements>{1024, 784}));
  EXPECT_DOUBLE_EQ(model->layout().find("layers.0.bias")->initial.scale, 1.0 / 28);
  EXPECT_DOUBLE_EQ(model->flops(64).value(), 2.0 * 64 * (3 * (784.0 * 1024 + 1024 * 1024 + 10240) - 784 * 1024));
}

TEST(Mlp, RefusesOptionsThatMakeNoModel) {
  const auto refused = [](const MlpOptions& options, const char* reason, Elements capacity = 1) {
    EXPECT_THAT([&] { make_mlp<float>(options, capacity); },
                testing::ThrowsMessage<InputError>(testing::HasSubstr(reason)));
  };
  refused({.widths = {}}, "0 widths");
  refused({.widths = {5}}, "1 widths");
  refused({.widths = {5, 0, 3}}, "width 0 of layer 1");
  refused({.widths = {5, 3}, .dropout = 1}, "dropout 1");
  refused({.widths = {5, 3}, .dropout = NAN}, "dropout nan");
  refused({.widths = {5, 3}}, "capacity of 0", 0);
}

}  // namespace
}  // namespace annulet::nn
