#include "annulet/nn/gpt.hpp"

#include <gmock/gmock.h>

#include "annulet/base/error.hpp"
#include "annulet/nn/optimizer.hpp"
#include "support.hpp"

namespace annulet::nn {
namespace {

// A model with weights and sequences for it.
template <class T>
struct Trial {
  Trial(const GptOptions& options, Elements samples, Elements time)
      : model(make_gpt<T>(options, std::max<Elements>(samples, 1))), weights(size()), gradients(size(), T(NAN)) {
    const auto values = noise<T>(model->layout().size(), 1);
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = values[i] / 2;
    for (Elements i = 0; i < samples * time; ++i) {
      tokens.push_back(static_cast<std::int32_t>(i * i % options.vocabulary));
      labels.push_back(static_cast<std::int32_t>((i + 1) * 5 % options.vocabulary));
    }
    batch = {.samples = samples, .features = {}, .labels = labels, .tokens = tokens, .first_draw = 3};
  }

  double forward() { return model->forward(batch, weights, Mode::train, progress).loss; }
  void backward(Accumulate accumulate = Accumulate::overwrite) {
    model->backward(batch, weights, gradients, 0.3, accumulate, progress);
  }
  std::size_t size() const { return static_cast<std::size_t>(model->layout().size()); }

  std::unique_ptr<Model<T>> model;
  std::vector<T> weights, gradients;
  std::vector<std::int32_t> tokens, labels;
  Batch<T> batch;
  Progress progress;
};

GptOptions small() {
  return {.vocabulary = 5, .context = 4, .layers = 2, .heads = 2, .width = 4, .hidden = 6, .seed = 9};
}

TEST(Gpt, HasTheGradientOfItsLoss) {
  for (const bool tied : {true, false}) {
    for (const bool bias : {true, false}) {
      for (const double dropout : {0.0, 0.3}) {
        GptOptions options = small();
        options.tied = tied, options.bias = bias, options.dropout = dropout;
        options.activation = bias ? Activation::gelu : Activation::gelu_tanh;
        options.recompute = tied != bias;
        Trial<double> trial(options, 2, bias ? 4 : 3);
        trial.forward();
        trial.backward();
        expect_gradient(trial.weights, trial.gradients, [&] { return 0.3 * trial.forward(); });
      }
    }
  }
}

TEST(Gpt, HasTheGradientOfItsLossWithOneTokenOneHeadAndOddWidths) {
  Trial<double> trial({.vocabulary = 3, .context = 1, .layers = 1, .heads = 1, .width = 3, .hidden = 5}, 3, 1);
  trial.forward();
  trial.backward();
  expect_gradient(trial.weights, trial.gradients, [&] { return 0.3 * trial.forward(); });
}

// The names in the order in which the reference numbers them.
std::vector<std::string> names(const GptOptions& options) {
  std::vector<std::string> names{"wte.weight", "wpe.weight"};
  for (Elements l = 0; l < options.layers; ++l) {
    for (const char* part : {"ln_1", "attn.c_attn", "attn.c_proj", "ln_2", "mlp.c_fc", "mlp.c_proj"}) {
      const std::string name = "h." + std::to_string(l) + "." + part;
      names.push_back(name + ".weight");
      if (options.bias || name.find("ln_") != std::string::npos) names.push_back(name + ".bias");
    }
  }
  names.insert(names.end(), {"ln_f.weight", "ln_f.bias"});
  if (!options.tied) names.emplace_back("lm_head.weight");
  return names;
}

struct Reference {
  double loss;
  std::vector<double> first_logits, last_logits;
  std::vector<std::pair<std::string, double>> norms;  // of gradients of the mean loss
  double norm;
};

// Weights: tensor k holds 0.4 sin(0.37 i + 0.9 k).
void expect_reference(const GptOptions& options, const Reference& reference) {
  const auto model = make_gpt<double>(options, 2);
  const Layout& layout = model->layout();
  std::vector<double> weights(static_cast<std::size_t>(layout.size())), gradients(weights.size());
  double k = 0;
  const auto all = names(options);
  ASSERT_EQ(all.size(), layout.tensors().size());
  for (const std::string& name : all) {
    const Tensor* tensor = layout.find(name);
    ASSERT_NE(tensor, nullptr) << name;
    const auto values = wave(tensor->count, 0.9 * k++, 0.4);
    std::copy(values.begin(), values.end(), weights.begin() + tensor->first);
  }
  std::vector<std::int32_t> tokens, labels;
  for (int b = 0; b < 2; ++b) {
    for (int t = 0; t < 5; ++t) tokens.push_back((3 * b + 2 * t) % 7), labels.push_back((b + 5 * t + 1) % 7);
  }
  const Batch<double> batch{.samples = 2, .features = {}, .labels = labels, .tokens = tokens};
  Progress progress;
  const LossSums sums = model->forward(batch, weights, Mode::train, progress);
  EXPECT_EQ(sums.targets, 10);
  EXPECT_NEAR(sums.loss / 10, reference.loss, 1e-12);
  expect_near(model->outputs().first(7), reference.first_logits, 1e-12);
  expect_near(model->outputs().last(7), reference.last_logits, 1e-12);
  model->backward(batch, weights, gradients, 0.1, Accumulate::overwrite, progress);
  for (const auto& [name, norm] : reference.norms) {
    const Tensor* tensor = layout.find(name);
    const auto part = std::span<const double>(gradients).subspan(static_cast<std::size_t>(tensor->first),
                                                                 static_cast<std::size_t>(tensor->count));
    EXPECT_NEAR(std::sqrt(squared_norm(part)), norm, 1e-12) << name;
  }
  EXPECT_NEAR(std::sqrt(squared_norm<double>(gradients)), reference.norm, 1e-12);
}

// Made with PyTorch 1.13 in float64.
TEST(Gpt, GivesTheValuesOfPyTorch) {
  expect_reference(
      {.vocabulary = 7, .context = 5, .layers = 2, .heads = 3, .width = 6, .hidden = 10, .bias = false, .tied = false},
      {1.9874292048958,
       {0.163829343750426, -0.558822792067421, 0.511845832376157, -0.0600523287216647, -0.439236288954157,
        0.591134920758251, -0.275507628737941},
       {0.44585142096496, -0.607315997185249, 0.288457109731347, 0.258541195603464, -0.601060443659561,
        0.468203716911484, 0.0349532029063576},
       {{"wte.weight", 0.14206542528883},
        {"wpe.weight", 0.10957073744584},
        {"h.0.attn.c_attn.weight", 0.018645518803934},
        {"h.1.mlp.c_fc.weight", 0.021234673526884},
        {"h.0.ln_1.weight", 0.0038927921092987},
        {"ln_f.bias", 0.1730055800776}},
       0.40935681440815});
  expect_reference({.vocabulary = 7,
                    .context = 5,
                    .layers = 2,
                    .heads = 2,
                    .width = 6,
                    .bias = true,
                    .tied = true,
                    .activation = Activation::gelu_tanh},
                   {1.9735716548807,
                    {0.256903773828826, -0.196048637468185, -0.019860475790419, 0.220062028954962, -0.246217522966258,
                     0.0776406964120554, 0.152341804281403},
                    {0.279268153516794, -0.263905831160049, 0.0398215856296815, 0.215757371100945, -0.300694803022812,
                     0.147814081024569, 0.121972126267323},
                    {{"wte.weight", 0.13776777153704},
                     {"wpe.weight", 0.016507819021918},
                     {"h.0.attn.c_attn.weight", 0.0020408346491973},
                     {"h.1.mlp.c_fc.weight", 0.0084943265076529},
                     {"h.0.ln_1.weight", 0.00058316477982141},
                     {"ln_f.bias", 0.11684951813486}},
                    0.22148351256205});
}

TEST(Gpt, DoesNotLookAtLaterTokens) {
  GptOptions options{.vocabulary = 11, .context = 20, .layers = 2, .heads = 2, .width = 10};
  Trial<float> trial(options, 2, 20);
  trial.forward();
  const std::vector<float> before(trial.model->outputs().begin(), trial.model->outputs().end());
  for (const std::size_t t : {0UL, 6UL, 13UL, 18UL}) {
    const auto kept = trial.tokens[t + 1];
    trial.tokens[t + 1] = (kept + 1) % 11;
    trial.forward();
    const auto after = trial.model->outputs();
    EXPECT_TRUE(std::equal(before.begin(), before.begin() + static_cast<std::ptrdiff_t>((t + 1) * 11), after.begin()));
    EXPECT_FALSE(std::equal(before.begin(), before.begin() + static_cast<std::ptrdiff_t>((t + 2) * 11), after.begin()));
    trial.tokens[t + 1] = kept;
  }
}

TEST(Gpt, RecomputesActivationsToTheSameBits) {
  for (const double dropout : {0.0, 0.2}) {
    GptOptions options{.vocabulary = 13, .context = 17, .layers = 3, .heads = 2, .width = 18, .dropout = dropout};
    Trial<float> kept(options, 3, 17);
    options.recompute = true;
    Trial<float> computed_again(options, 3, 17);
    EXPECT_EQ(kept.forward(), computed_again.forward());
    kept.backward(), computed_again.backward();
    EXPECT_EQ(kept.gradients, computed_again.gradients);
    EXPECT_GT(computed_again.model->recomputation(3).value(), 0);
    EXPECT_EQ(kept.model->recomputation(3).value(), 0);
  }
}

TEST(Gpt, AddsUpTheGradientsOfPartsToThoseOfTheBatch) {
  GptOptions options = small();
  options.dropout = 0.2;
  Trial<double> whole(options, 4, 4), parts(options, 4, 4);
  const double loss = whole.forward();
  whole.backward();
  const Batch<double> all = parts.batch;
  double sum = 0;
  for (const auto& [first, count] : {std::pair<std::size_t, std::size_t>{0, 3}, {3, 1}}) {
    parts.batch.samples = static_cast<Elements>(count);
    parts.batch.tokens = all.tokens.subspan(4 * first, 4 * count);
    parts.batch.labels = all.labels.subspan(4 * first, 4 * count);
    parts.batch.first_draw = all.first_draw + first;
    sum += parts.forward();
    parts.backward(first == 0 ? Accumulate::overwrite : Accumulate::add);
  }
  EXPECT_NEAR(sum, loss, 1e-12);
  expect_near(parts.gradients, whole.gradients, 1e-12);
}

TEST(Gpt, GivesZeroGradientsForAnEmptyBatch) {
  Trial<double> trial(small(), 0, 4);
  EXPECT_EQ(trial.forward(), 0);
  trial.backward();
  EXPECT_THAT(trial.gradients, testing::Each(0.0));
}

TEST(Gpt, ReportsEachGradientOnceInLayoutOrder) {
  struct Recorder final : Progress {
    std::vector<std::size_t> seen;
    void gradient_ready(std::size_t tensor) override { seen.push_back(tensor); }
  };
  for (const bool tied : {true, false}) {
    GptOptions options = small();
    options.tied = tied, options.recompute = true;
    Trial<float> trial(options, 2, 4);
    Recorder recorder;
    trial.model->forward(trial.batch, trial.weights, Mode::train, recorder);
    trial.model->backward(trial.batch, trial.weights, trial.gradients, 1, Accumulate::overwrite, recorder);
    ASSERT_EQ(recorder.seen.size(), trial.model->layout().tensors().size());
    for (std::size_t i = 0; i < recorder.seen.size(); ++i) EXPECT_EQ(recorder.seen[i], i);
  }
}

TEST(Gpt, DescribesItselfAndCountsItsParameters) {
  const GptOptions options{.vocabulary = 65, .bias = false, .tied = false};
  const auto model = make_gpt<float>(options, 1);
  EXPECT_EQ(model->describe(), "gpt 4 layers, 4 heads, width 128, context 64, vocabulary 65, 813,568 parameters");
  EXPECT_DOUBLE_EQ(model->layout().find("h.0.mlp.c_proj.weight")->initial.scale, 0.02 / std::sqrt(8.0));
  const double products = 4 * 12.0 * 128 * 128 + 128 * 65, attention = 4 * 2.0 * 128 * 64;
  EXPECT_DOUBLE_EQ(model->flops(2).value(), 6.0 * 128 * (products + attention));
}

TEST(Gpt, RefusesOptionsThatMakeNoModel) {
  const auto refused = [](GptOptions options, const char* reason) {
    EXPECT_THAT([&] { make_gpt<float>(options, 1); }, testing::ThrowsMessage<InputError>(testing::HasSubstr(reason)));
  };
  refused({.vocabulary = 5, .heads = 7, .width = 128}, "7 heads do not divide a width of 128");
  refused({.vocabulary = 0}, "vocabulary of 0");
  refused({.vocabulary = 5, .dropout = 1}, "dropout 1");
  refused({.vocabulary = 5, .context = 0}, "context of 0");
}

}  // namespace
}  // namespace annulet::nn
