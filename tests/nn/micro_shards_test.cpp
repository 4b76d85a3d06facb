// Batches in micro-shards: every micro-shard's share of gradients and losses has the same bits in any company, and the
// tree adds them in one order.
#include <gtest/gtest.h>

#include "annulet/base/sum_tree.hpp"
#include "annulet/nn/gpt.hpp"
#include "annulet/nn/mlp.hpp"
#include "support.hpp"

namespace annulet::nn {
namespace {

// A model and samples for it, of which some consecutive ones can be passed.
template <class T>
struct Trial {
  std::unique_ptr<Model<T>> model;
  Elements inputs, tokens_of_sample;  // one of them 0
  std::vector<T> weights = halved(noise<T>(model->layout().size(), 1));
  std::vector<T> features = noise<T>(kSamples * inputs, 2);
  std::vector<std::int32_t> tokens = numbers(kSamples * tokens_of_sample, 3),
                            labels = numbers(kSamples * std::max<Elements>(1, tokens_of_sample), 5);

  static constexpr Elements kSamples = 40;
  static constexpr std::int32_t kClasses = 5;

  struct Result {
    std::vector<T> gradients;
    std::vector<double> losses;
    LossSums sums;
  };

  // Of the samples from `first` that the micro-shards take.
  Result pass(Elements first, std::vector<Elements> micro_shards) {
    Elements samples = 0;
    for (const Elements count : micro_shards) samples += count;
    Result result{std::vector<T>(weights.size(), T(NAN)), std::vector<double>(micro_shards.size(), NAN), {}};
    const auto part = [&](const auto& all, Elements width) {
      return std::span(all).subspan(static_cast<std::size_t>(first * width), static_cast<std::size_t>(samples * width));
    };
    const Batch<T> batch{.samples = samples,
                         .features = part(features, inputs),
                         .labels = part(labels, std::max<Elements>(1, tokens_of_sample)),
                         .tokens = part(tokens, tokens_of_sample),
                         .first_draw = static_cast<std::uint64_t>(7 + first),
                         .micro_shards = micro_shards,
                         .losses = result.losses};
    Progress quiet;
    model->reserve(std::ssize(micro_shards));
    result.sums = model->forward(batch, weights, Mode::train, quiet);
    model->backward(batch, weights, result.gradients, 0.1, Accumulate::overwrite, quiet);
    return result;
  }

  static std::vector<T> halved(std::vector<T> values) {
    for (T& value : values) value /= 2;
    return values;
  }
  static std::vector<std::int32_t> numbers(Elements n, Elements factor) {
    std::vector<std::int32_t> values;
    for (Elements i = 0; i < n; ++i) values.push_back(static_cast<std::int32_t>(i * i * factor % kClasses));
    return values;
  }
};

template <class T>
Trial<T> mlp_trial() {
  return {make_mlp<T>({.widths = {70, 130, 9, Trial<T>::kClasses}, .activation = Activation::gelu, .dropout = 0.2},
                      Trial<T>::kSamples),
          70, 0};
}

template <class T>
Trial<T> gpt_trial(bool tied) {
  return {make_gpt<T>({.vocabulary = Trial<T>::kClasses,
                       .context = 7,
                       .layers = 2,
                       .heads = 3,
                       .width = 21,
                       .tied = tied,
                       .dropout = 0.1,
                       .recompute = tied},
                      Trial<T>::kSamples),
          0, 7};
}

// The tree of micro-shards, each in a pass of its own.
template <class T>
std::vector<T> tree_of_single_passes(Trial<T>& trial, Elements first, std::span<const Elements> micro_shards) {
  if (micro_shards.size() == 1) return trial.pass(first, {micro_shards.front()}).gradients;
  const auto half = static_cast<std::size_t>(first_half(std::ssize(micro_shards)));
  auto sum = tree_of_single_passes(trial, first, micro_shards.first(half));
  for (const Elements count : micro_shards.first(half)) first += count;
  const auto right = tree_of_single_passes(trial, first, micro_shards.subspan(half));
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += right[i];
  return sum;
}

template <class T>
void expect_the_bits_of_single_passes(Trial<T> trial) {
  SCOPED_TRACE(trial.model->describe());
  const std::vector<std::vector<Elements>> divisions{{40},   {20, 20},  {5, 5, 5, 5, 4, 4, 4, 4}, {2, 1, 1, 1, 0, 0, 0},
                                                     {0, 0}, {3, 3, 3}, {1, 30, 1, 1, 3, 1}};
  for (const auto& micro_shards : divisions) {
    const auto whole = trial.pass(0, micro_shards);
    EXPECT_EQ(whole.gradients, tree_of_single_passes<T>(trial, 0, micro_shards))
        << testing::PrintToString(micro_shards);
    Elements first = 0;
    for (std::size_t i = 0; i < micro_shards.size(); ++i) {
      EXPECT_EQ(trial.pass(first, {micro_shards[i]}).losses[0], whole.losses[i]);
      first += micro_shards[i];
    }
  }
}

TEST(MicroShards, HaveTheBitsOfSinglePassesInAnMlp) {
  expect_the_bits_of_single_passes(mlp_trial<float>());
  expect_the_bits_of_single_passes(mlp_trial<double>());
}

TEST(MicroShards, HaveTheBitsOfSinglePassesInAGpt) {
  for (const bool tied : {true, false}) {
    expect_the_bits_of_single_passes(gpt_trial<float>(tied));
    expect_the_bits_of_single_passes(gpt_trial<double>(tied));
  }
}

// More rows than a block of the products' inner dimension takes.
TEST(MicroShards, HaveTheBitsOfSinglePassesWhereTheyAreLong) {
  Trial<float> trial = gpt_trial<float>(true);
  const std::vector<Elements> micro_shards{30, 1, 9};  // 210, 7 and 63 rows
  EXPECT_EQ(trial.pass(0, micro_shards).gradients, tree_of_single_passes<float>(trial, 0, micro_shards));
}

TEST(MicroShards, HaveTheGradientAndLossOfTheWholeBatchButForRounding) {
  Trial<double> trial = gpt_trial<double>(true);
  const auto parts = trial.pass(0, {10, 10, 10, 10}), one = trial.pass(0, {40});
  expect_near(parts.gradients, one.gradients, 1e-12);
  EXPECT_NEAR(parts.sums.loss, one.sums.loss, 1e-11);
  EXPECT_EQ(parts.sums.correct, one.sums.correct);
  EXPECT_EQ(parts.sums.targets, 280);
}

TEST(MicroShards, MakeUpTheBatch) {
  Trial<float> trial = mlp_trial<float>();
  const std::vector<Elements> micro_shards{2, 1};
  std::vector<double> losses(2);
  const Batch<float> batch{.samples = 2,
                           .features = std::span(trial.features).first(140),
                           .labels = std::span(trial.labels).first(2),
                           .micro_shards = micro_shards,
                           .losses = losses};
  Progress quiet;
  EXPECT_THROW(trial.model->forward(batch, trial.weights, Mode::train, quiet), ContractError);
}

}  // namespace
}  // namespace annulet::nn
