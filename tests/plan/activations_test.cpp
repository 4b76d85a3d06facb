#include "annulet/plan/activations.hpp"

#include <gtest/gtest.h>

#include "plan/models.hpp"

namespace annulet::plan {
namespace {

// s b h (34 + 5 a s / h) a layer: Korthikanti et al. 2022, equation 1.
TEST(Activations, OfGptAreThePapers) {
  const Architecture a = config("gpt-3-175b");
  const Elements s = 2048, b = 3, h = 12'288, heads = 96, layers = 96;
  const Activations kept = activations(a, {.sequences = b});
  EXPECT_EQ(kept.kept.value(), layers * (34 * s * b * h + 5 * heads * s * s * b));
  EXPECT_EQ(kept.working.value(), 0);
  EXPECT_EQ(kept.ends.value(), s * b * h * 5 + 4 * s * b * Elements{50'257});
  EXPECT_EQ(kept.total(), kept.kept + kept.ends);
}

TEST(Activations, OfTheScoresCanBeLeftOut) {
  const Architecture a = config("gpt-3-175b");
  const Elements s = 2048, h = 12'288, layers = 96;
  const Activations tiled = activations(a, {.keeps_scores = false});
  const Activations again = activations(a, {.recomputation = Recomputation::attention});
  EXPECT_EQ(tiled.kept.value(), layers * 34 * s * h);
  EXPECT_EQ(again.kept, tiled.kept);
  EXPECT_EQ(tiled.working.value(), 0);
  EXPECT_EQ(again.working.value(), 5 * 96 * s * s);
}

TEST(Activations, OfRecomputedBlocksAreTheirInputsAndOneBlock) {
  const Elements s = 2048, b = 2, h = 12'288, layers = 96, heads = 96;
  const Activations again = activations(config("gpt-3-175b"), {.sequences = b, .recomputation = Recomputation::blocks});
  EXPECT_EQ(again.kept.value(), layers * 2 * s * b * h);
  EXPECT_EQ(again.working.value(), 34 * s * b * h + 5 * heads * s * s * b);
}

TEST(Activations, OfGatedAndGroupedModelsFollowTheirTensors) {
  const Architecture a = config("llama-3-8b");
  const Elements s = 1000, h = 4096, kv = 1024, f = 14'336, layers = 32;
  const Activations plain = activations(a, {.sequence = s, .dropout = false, .keeps_scores = false});
  EXPECT_EQ(plain.kept.value(), layers * s * 2 * ((h + 2 * h + 2 * kv) + (h + 4 * f) + 2 * h));
  const Activations scores = activations(a, {.sequence = s, .dropout = false});
  EXPECT_EQ((scores.kept - plain.kept).value(), layers * 2 * 32 * s * s);
}

TEST(Activations, OfAParallelBlockShareItsNorm) {
  Architecture a = config("palm-540b");
  const ActivationOptions options{.sequence = 10};
  const Bytes side_by_side = activations(a, options).kept;
  a.parallel = false;
  EXPECT_EQ((activations(a, options).kept - side_by_side).value(), 118 * 10 * 2 * 2 * Elements{18'432});
}

TEST(Activations, GrowWithTheElementButNotTheMasks) {
  const Architecture a = config("gpt-2");
  const Bytes narrow = activations(a, {.dropout = false}).kept;
  EXPECT_EQ(activations(a, {.element = Bytes(4), .dropout = false}).kept, narrow * 2);
  const Bytes masks = activations(a, {}).kept - activations(a, {.dropout = false}).kept;
  EXPECT_EQ(masks.value(), 12 * Elements{1024} * (2 * 768 + (2 + 1) * 12 * 1024));
}

TEST(Activations, OfAnMlpAreItsLayersInputsAndOutputs) {
  const Activations kept = activations(config("peer-mlp"), {.sequences = 64, .element = Bytes(4), .dropout = false});
  EXPECT_EQ(kept.kept.value(), 64 * 4 * 2 * 2048);
  EXPECT_EQ(kept.ends.value(), 64 * 4 * (784 + 10));
  EXPECT_EQ(activations(config("peer-mlp"), {.sequences = 64, .element = Bytes(4)}).kept - kept.kept, Bytes(64 * 2048));
}

}  // namespace
}  // namespace annulet::plan
