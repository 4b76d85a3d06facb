#include "annulet/train/rank_gradient.hpp"

#include <gmock/gmock.h>

#include "annulet/train/trainer.hpp"
#include "annulet/train/weights.hpp"
#include "base/temporary_folder.hpp"

namespace annulet::train {
namespace {

Config small(const std::string& type) {
  Config config;
  config.type = type, config.batch = 7;
  config.widths = {5, 6, 3};
  config.data = "synthetic", config.samples = 20;
  return config;
}

template <class T>
std::filesystem::path weights_in(const std::filesystem::path& file, const Config& config) {
  const auto model = make_model<T>(config, 3, 1);
  std::vector<T> weights(static_cast<std::size_t>(model->layout().size()));
  nn::initialize<T>(model->layout(), 1, weights);
  save_weights<T>(file, model->layout(), std::span<const T>(weights));
  return file;
}

// Also with more ranks than samples of the batch.
TEST(RankGradient, SumsToTheGradientOfTheGlobalBatchWhateverTheRanks) {
  const test::TemporaryFolder folder;
  for (const std::string type : {"float", "double"}) {
    const Config config = small(type);
    const Data data = load_data(config);
    const auto file = type == "float" ? weights_in<float>(folder / "w.safetensors", config)
                                      : weights_in<double>(folder / "w.safetensors", config);
    const std::vector<float> whole = rank_gradient(config, data, file, 0, 1);
    ASSERT_EQ(whole.size(), 57U);
    for (const int world : {2, 3, 9}) {
      std::vector<float> sum(whole.size(), 0);
      for (int r = 0; r < world; ++r) {
        const auto part = rank_gradient(config, data, file, r, world);
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
      }
      for (std::size_t i = 0; i < sum.size(); ++i) EXPECT_NEAR(sum[i], whole[i], 1e-6F) << world << ' ' << i;
    }
  }
}

TEST(RankGradient, OfDataThatDoNotFitTheModelIsRefused) {
  const test::TemporaryFolder folder;
  Config config = small("float");
  const auto file = weights_in<float>(folder / "w.safetensors", config);
  config.widths.front() = 4;
  const Data data = load_data(config);
  config.widths.front() = 5;
  EXPECT_THROW(rank_gradient(config, data, file, 0, 1), InputError);
}

}  // namespace
}  // namespace annulet::train
