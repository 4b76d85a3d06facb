// What the formula says a model owns is what its buffers take.
#include <gtest/gtest.h>

#include "annulet/base/memory_account.hpp"
#include "annulet/nn/gpt.hpp"

namespace annulet::nn {
namespace {

template <class T, class Options>
void expect_formula(std::unique_ptr<Model<T>> (*make)(const Options&, Elements), const Options& options,
                    Elements capacity) {
  MemoryAccount account("activations");
  const MemoryScope scope(account);
  const auto model = make(options, capacity);
  for (const Elements micro_shards : {0, 1, 7, 64}) {
    model->reserve(micro_shards);
    EXPECT_EQ(account.held(), Bytes(sizeof(T)) * model->owned_elements())
        << model->describe() << ", " << capacity << ", " << micro_shards;
  }
}

TEST(OwnedElements, AreWhatAnMlpHolds) {
  for (const Elements capacity : {1, 7, 64}) {
    expect_formula(make_mlp<float>, {.widths = {20, 33, 17, 5}}, capacity);
    expect_formula(make_mlp<double>, {.widths = {20, 33, 17, 50}, .dropout = 0.1}, capacity);
    expect_formula(make_mlp<float>, {.widths = {999, 1000}, .loss = Loss::mse}, capacity);
  }
}

TEST(OwnedElements, AreWhatAGptHolds) {
  for (const Elements capacity : {1, 5}) {
    expect_formula(make_gpt<float>, {.vocabulary = 17, .context = 6, .layers = 3, .heads = 2, .width = 16}, capacity);
    expect_formula(make_gpt<double>, {.vocabulary = 65, .context = 33, .hidden = 100, .dropout = 0.1}, capacity);
    expect_formula(make_gpt<float>,
                   {.vocabulary = 65, .context = 700, .tied = false, .dropout = 0.1, .recompute = true}, capacity);
  }
}

}  // namespace
}  // namespace annulet::nn
