#include "annulet/train/weights.hpp"

#include <gmock/gmock.h>

#include <numeric>

#include "annulet/base/error.hpp"
#include "base/temporary_folder.hpp"

namespace annulet::train {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

nn::Layout layout() { return nn::Layout({{"layers.0.bias", {2}, {}}, {"layers.0.weight", {2, 3}, {}}}); }

TEST(Weights, ComeBackBitForBitAndInTheOtherType) {
  const annulet::test::TemporaryFolder folder;
  std::vector<float> weights(8);
  std::iota(weights.begin(), weights.end(), 0.1F);
  save_weights<float>(folder / "w.safetensors", layout(), weights);
  std::vector<float> back(8);
  load_weights<float>(folder / "w.safetensors", layout(), back);
  EXPECT_EQ(back, weights);
  std::vector<double> wide(8);
  load_weights<double>(folder / "w.safetensors", layout(), wide);
  EXPECT_EQ(wide[3], static_cast<double>(weights[3]));
}

TEST(WeightsFile, OfPiecesInAnyOrderIsThatOfTheWhole) {
  const annulet::test::TemporaryFolder folder;
  const nn::Layout two = layout();
  std::vector<float> weights(8);
  std::iota(weights.begin(), weights.end(), 0.1F);
  save_weights<float>(folder / "whole", two, weights);
  WeightsFile<float> file(folder / "pieces", two);
  const auto piece = [&](std::size_t first, std::size_t end) {
    file.write(static_cast<Elements>(first), std::span<const float>(weights).subspan(first, end - first));
  };
  piece(5, 8);
  EXPECT_THROW(file.commit(), ContractError);
  piece(0, 1), piece(1, 5);  // over the border of the tensors
  EXPECT_FALSE(std::filesystem::exists(folder / "pieces"));
  file.commit();
  EXPECT_EQ(annulet::test::content_of(folder / "pieces"), annulet::test::content_of(folder / "whole"));
}

TEST(Weights, KeepTheVocabularyOfTheirText) {
  const annulet::test::TemporaryFolder folder;
  const auto file = folder / "w.safetensors";
  save_weights<float>(file, layout(), std::vector<float>(8), data::Vocabulary::parse("10 65 255"));
  ASSERT_TRUE(load_vocabulary(file));
  EXPECT_EQ(load_vocabulary(file)->to_text(), "10 65 255");
  save_weights<float>(file, layout(), std::vector<float>(8));
  EXPECT_FALSE(load_vocabulary(file));
}

TEST(Weights, OfAnotherModelAreRefusedWithTheTensorsName) {
  const annulet::test::TemporaryFolder folder;
  const auto file = folder / "w.safetensors";
  save_weights<float>(file, layout(), std::vector<float>(8));
  const auto load = [&](std::vector<nn::Tensor> tensors) {
    const nn::Layout other(std::move(tensors));
    std::vector<float> weights(static_cast<std::size_t>(other.size()));
    load_weights<float>(file, other, weights);
  };
  EXPECT_THAT(
      [&] {
        load({{"layers.0.bias", {2}, {}}, {"layers.0.weight", {3, 2}, {}}});
      },
      ThrowsMessage<InputError>(HasSubstr("'layers.0.weight' has shape [2, 3], the model wants [3, 2]")));
  EXPECT_THAT(
      [&] {
        load({{"layers.0.bias", {2}, {}}});
      },
      ThrowsMessage<InputError>(HasSubstr("'layers.0.weight' is none of the model's")));
  EXPECT_THAT([&] { load({{"head", {2}, {}}}); }, ThrowsMessage<InputError>(HasSubstr("head")));
}

}  // namespace
}  // namespace annulet::train
