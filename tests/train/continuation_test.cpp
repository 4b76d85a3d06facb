#include "annulet/train/continuation.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "annulet/base/error.hpp"
#include "annulet/nn/gpt.hpp"

namespace annulet::train {
namespace {

// Probabilities 0.6, 0.3, 0.1 at temperature 1.
const std::vector<double> kLogits{std::log(0.3), std::log(0.6), std::log(0.1)};

std::int32_t draw(double temperature, Elements top_k, double uniform) {
  return draw_token<double>(kLogits, temperature, top_k, uniform);
}

TEST(DrawToken, FollowsTheProbabilities) {
  EXPECT_EQ(draw(1, 0, 0), 1);
  EXPECT_EQ(draw(1, 0, 0.599), 1);
  EXPECT_EQ(draw(1, 0, 0.601), 0);
  EXPECT_EQ(draw(1, 0, 0.899), 0);
  EXPECT_EQ(draw(1, 0, 0.901), 2);
  EXPECT_EQ(draw(1, 0, std::nextafter(1.0, 0.0)), 2);
}

TEST(DrawToken, IsBolderWhenHotAndSureWhenCold) {
  EXPECT_EQ(draw(1000, 0, 0.34), 0);
  EXPECT_EQ(draw(0.01, 0, 0.999), 1);
  EXPECT_EQ(draw(0, 0, 0.999), 1);
}

TEST(DrawToken, StaysAmongTheMostProbable) {
  EXPECT_EQ(draw(1, 1, 0.999), 1);
  EXPECT_EQ(draw(1, 2, 0.999), 0);
  EXPECT_EQ(draw(1, 9, 0.999), 2);
}

TEST(Continuation, IsAFunctionOfPromptAndSeedBeyondTheContextToo) {
  const auto model = nn::make_gpt<float>({.vocabulary = 7, .context = 4, .layers = 1, .heads = 1, .width = 8}, 1);
  std::vector<float> weights(static_cast<std::size_t>(model->layout().size()));
  nn::initialize<float>(model->layout(), 3, weights);
  const auto speak = [&](std::uint64_t seed) {
    Continuation<float> text(*model, weights, {.context = 4, .temperature = 5, .seed = seed}, {1, 2, 3, 4, 5, 6});
    std::vector<std::int32_t> tokens;
    for (int i = 0; i < 20; ++i) tokens.push_back(text.next());
    return tokens;
  };
  EXPECT_EQ(speak(1), speak(1));
  EXPECT_NE(speak(1), speak(2));
  EXPECT_THAT(speak(1), testing::Each(testing::AllOf(testing::Ge(0), testing::Lt(7))));
  const auto refused = [&](const ContinuationOptions& options, std::vector<std::int32_t> prompt) {
    EXPECT_THROW(Continuation<float>(*model, weights, options, std::move(prompt)), InputError);
  };
  refused({.context = 0}, {1});
  refused({}, {});
  refused({.temperature = -1}, {1});
  refused({.top_k = -1}, {1});
}

// The last token's logits, of the last four tokens: the most probable token of a forward pass over just those.
TEST(Continuation, GoesOnFromTheLastTokensOfTheContext) {
  const auto model = nn::make_gpt<float>({.vocabulary = 7, .context = 4, .layers = 1, .heads = 1, .width = 8}, 1);
  std::vector<float> weights(static_cast<std::size_t>(model->layout().size()));
  nn::initialize<float>(model->layout(), 3, weights);
  for (float& weight : weights) weight *= 20;  // far from even
  const auto most_probable = [&](std::vector<std::int32_t> window, std::size_t among) {
    nn::Progress quiet;
    model->forward({.samples = 1, .features = {}, .tokens = window}, weights, nn::Mode::evaluate, quiet);
    const auto logits = model->outputs().last(7).first(among);
    return static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  };
  for (const Elements vocabulary : {0, 3}) {
    Continuation<float> text(*model, weights, {.context = 4, .vocabulary = vocabulary, .temperature = 0},
                             {1, 2, 3, 0, 2, 6});
    std::vector<std::int32_t> tokens{1, 2, 3, 0, 2, 6};
    for (int i = 0; i < 8; ++i) {
      const auto expected = most_probable({tokens.end() - 4, tokens.end()}, vocabulary == 0 ? 7 : 3);
      ASSERT_EQ(text.next(), expected);
      tokens.push_back(expected);
    }
  }
}

}  // namespace
}  // namespace annulet::train
