#include "annulet/plan/flops.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "annulet/nn/gpt.hpp"
#include "annulet/nn/mlp.hpp"
#include "plan/models.hpp"

namespace annulet::plan {
namespace {

Flops sum(const std::vector<Flops>& all) { return std::accumulate(all.begin(), all.end(), Flops(0)); }

TEST(Flops, OfTheDecksStep) {
  const Flops step = flops_per_token(config("llama-7b")) * 1'048'576;
  EXPECT_EQ(step, flops_per_token(6'738'149'376, {32, 32, 128, 4096}) * 1'048'576);
  EXPECT_NEAR(step.value(), 4.9148e16, 0.00005e16);
}

TEST(Flops, AreSixPerParameterAndTwelvePerScore) {
  const Architecture a = config("llama-3-8b");
  const double scores = 12. * 32 * 32 * 128 * 2048;
  for (const Counted counted : {Counted::all, Counted::matrices, Counted::products}) {
    const double products = 6 * static_cast<double>(counted_parameters(a, counted));
    EXPECT_DOUBLE_EQ(flops_per_token(a, {counted, true, 2048}).value(), products + scores);
    EXPECT_DOUBLE_EQ(flops_per_token(a, {counted, false}).value(), products);
    EXPECT_DOUBLE_EQ(forward_per_token(a, {counted, true, 2048}).value(), (products + scores) / 3);
  }
}

TEST(Flops, CountWhatTheyAreAskedTo) {
  const Parameters llama = parameters(config("llama-7b")), gpt2 = parameters(config("gpt-2"));
  EXPECT_EQ(counted_parameters(config("llama-7b"), Counted::all), llama.total());
  EXPECT_EQ(counted_parameters(config("llama-7b"), Counted::matrices), 6'738'149'376);
  EXPECT_EQ(counted_parameters(config("llama-7b"), Counted::products), llama.matrices() - 32'000 * 4096);
  EXPECT_EQ(counted_parameters(config("gpt-2"), Counted::products), gpt2.attention + gpt2.ffn + 50'257 * 768);
}

TEST(Flops, AreTheContextsUnlessASequenceIsGiven) {
  const Architecture a = config("gpt-2");
  EXPECT_EQ(flops_per_token(a), flops_per_token(a, {.sequence = 1024}));
  EXPECT_GT(flops_per_token(a), flops_per_token(a, {.sequence = 1023}));
}

TEST(Flops, OfBackwardSumUpToTwoThirds) {
  for (const char* name : {"llama-3-8b", "gpt-2", "palm-540b", "nanogpt-char", "peer-gpt"}) {
    for (const Counted counted : {Counted::all, Counted::matrices, Counted::products}) {
      const Architecture a = config(name);
      const double all = flops_per_token(a, {counted}).value();
      EXPECT_DOUBLE_EQ(sum(backward_per_tensor(a, Recomputation::none, {counted})).value(), all / 3 * 2) << name;
    }
  }
}

TEST(Flops, OfBackwardStandWhereTheyAreSpent) {
  const Architecture a = gpt(2, 128, 70, 8);
  const std::vector<ModelTensor> list = tensors(a);
  const std::vector<Flops> backward = backward_per_tensor(a, Recomputation::none, {Counted::products});
  ASSERT_EQ(backward.size(), list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    double expected = 0;
    if (i == 0) expected = 4. * 70 * 128;  // the head's, before the final norm
    if (list[i].part == Part::attention || list[i].part == Part::ffn)
      expected = static_cast<double>(4 * list[i].elements);
    if (list[i].name.ends_with("attn.c_attn.bias")) expected = 8. * 128 * 8;
    EXPECT_EQ(backward[i].value(), expected) << list[i].name;
  }
}

TEST(Flops, AreTheEnginesOwn) {
  const nn::GptOptions peer{.vocabulary = 65, .context = 64, .layers = 4, .width = 128, .bias = false, .tied = false};
  EXPECT_DOUBLE_EQ((flops_per_token(config("peer-gpt"), {Counted::products}) * (3 * 64)).value(),
                   nn::make_gpt<float>(peer, 3)->flops(3).value());
  const nn::GptOptions tied{.vocabulary = 70, .context = 8, .layers = 3, .heads = 2, .width = 128};
  EXPECT_DOUBLE_EQ((flops_per_token(gpt(3, 128, 70, 8), {Counted::products}) * (2 * 8)).value(),
                   nn::make_gpt<float>(tied, 2)->flops(2).value());
  EXPECT_DOUBLE_EQ((flops_per_token(config("peer-mlp")) * 5).value(),
                   nn::make_mlp<float>({.widths = {784, 1024, 1024, 10}}, 5)->flops(5).value());
}

// Narayanan et al. 2021, equation 3, of one sequence.
TEST(Flops, WithRecomputedBlocksAreMegatrons) {
  const double l = 36, h = 4096, s = 2048, v = 51'200;
  const double equation = 96 * s * l * h * h * (1 + s / (6 * h) + v / (16 * l * h));
  const Architecture a = gpt(36, 4096, 51'200, 2048);
  const FlopsOptions options{Counted::products};
  const Flops token = flops_per_token(a, options) + recomputation_per_token(a, Recomputation::blocks, options);
  EXPECT_DOUBLE_EQ((token * s).value(), equation);
}

TEST(Flops, OfRecomputationAreAnotherForwardOfWhatWasNotKept) {
  const Architecture a = config("llama-7b");
  const Parameters counts = parameters(a);
  const double scores = 4. * 32 * 32 * 128 * 4096;
  EXPECT_EQ(recomputation_per_token(a, Recomputation::none).value(), 0);
  EXPECT_EQ(recomputation_per_token(a, Recomputation::attention).value(), scores);
  EXPECT_EQ(recomputation_per_token(a, Recomputation::blocks).value(),
            2 * static_cast<double>(counts.attention + counts.ffn) + scores);
  EXPECT_EQ(recomputation_per_token(config("peer-mlp"), Recomputation::blocks).value(), 0);
}

TEST(Flops, OfRecomputationArePartOfBackward) {
  for (const Recomputation recomputation : {Recomputation::attention, Recomputation::blocks}) {
    for (const char* name : {"llama-3-8b", "gpt-2", "palm-540b"}) {
      const Architecture a = config(name);
      const Flops more = sum(backward_per_tensor(a, recomputation)) - sum(backward_per_tensor(a));
      EXPECT_DOUBLE_EQ(more.value(), recomputation_per_token(a, recomputation).value()) << name;
    }
  }
}

TEST(Flops, OfARecomputedBlockComeBeforeItsFirstGradient) {
  const Architecture a = config("gpt-2");
  const std::vector<ModelTensor> list = tensors(a);
  const std::vector<Flops> plain = backward_per_tensor(a), again = backward_per_tensor(a, Recomputation::blocks);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const bool first = list[i].name.ends_with("mlp.c_proj.bias");
    EXPECT_EQ(again[i] > plain[i], first) << list[i].name;
  }
}

}  // namespace
}  // namespace annulet::plan
