#include "annulet/plan/model_file.hpp"

#include <gmock/gmock.h>

#include <filesystem>

#include "annulet/base/error.hpp"
#include "plan/models.hpp"

namespace annulet::plan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr const char* kSmall =
    "layers = 2\nwidth = 128\nheads = 4\nffn = 512\ngated = true\nvocabulary = 65\ncontext = 64\n"
    "positions = \"learned\"\ntied = false\nnorm = \"rms\"\n";

// kSmall with a line in the place of one of its own.
std::string with(int line, const std::string& text) {
  std::string changed = kSmall;
  std::size_t first = 0;
  for (int i = 1; i < line; ++i) first = changed.find('\n', first) + 1;
  return changed.replace(first, changed.find('\n', first) - first, text);
}

TEST(ModelFile, GivesEverySize) {
  const Architecture a =
      parse_model(std::string("source = \"me\"\n") + kSmall + "kv_heads = 2\nhead_width = 16\nparallel = true\n",
                  "a/folder/small.toml");
  EXPECT_EQ(a.name, "small");
  EXPECT_EQ(a.source, "me");
  EXPECT_EQ(a.kind, Kind::decoder);
  EXPECT_EQ(a.layers, 2);
  EXPECT_EQ(a.width, 128);
  EXPECT_EQ(a.heads, 4);
  EXPECT_EQ(a.kv_heads, 2);
  EXPECT_EQ(a.head_width, 16);
  EXPECT_EQ(a.ffn, 512);
  EXPECT_TRUE(a.gated);
  EXPECT_TRUE(a.parallel);
  EXPECT_EQ(a.vocabulary, 65);
  EXPECT_EQ(a.context, 64);
  EXPECT_EQ(a.positions, 64);
  EXPECT_FALSE(a.tied);
  EXPECT_EQ(a.norm, Norm::rms);
}

TEST(ModelFile, FillsInWhatFollows) {
  const Architecture a = parse_model(kSmall, "m");
  EXPECT_EQ(a.kv_heads, 4);
  EXPECT_EQ(a.head_width, 32);
  EXPECT_FALSE(a.parallel || a.norm_bias || a.attention_bias || a.ffn_bias || a.head_bias);
  EXPECT_TRUE(parse_model(with(10, "norm = \"layer\""), "m").norm_bias);
  EXPECT_FALSE(parse_model(with(10, "norm = \"layer\"\nnorm_bias = false"), "m").norm_bias);
  EXPECT_EQ(parse_model(with(8, "positions = \"rotary\""), "m").positions, 0);
  EXPECT_EQ(parse_model(with(8, "positions = \"none\""), "m").positions, 0);
}

TEST(ModelFile, GivesBiasesTogetherOrApart) {
  const Architecture together = parse_model(std::string(kSmall) + "bias = true\n", "m");
  EXPECT_TRUE(together.attention_bias && together.ffn_bias && !together.head_bias);
  const Architecture apart =
      parse_model(std::string(kSmall) + "bias = true\nattention_bias = false\nhead_bias = true\n", "m");
  EXPECT_TRUE(!apart.attention_bias && apart.ffn_bias && apart.head_bias);
}

TEST(ModelFile, DescribesAnMlpByItsWidths) {
  const Architecture a = parse_model("kind = \"mlp\"\nwidths = [784,  32 ,10]\n", "m");
  EXPECT_EQ(a.kind, Kind::mlp);
  EXPECT_THAT(a.widths, ElementsAre(784, 32, 10));
}

TEST(ModelFile, SaysWhatIsWrongWhereAndWhatToTry) {
  const auto refuses = [](const std::string& text, const char* why, const char* hint) {
    EXPECT_THAT([&] { parse_model(text, "m.toml"); },
                ThrowsMessage<InputError>(AllOf(HasSubstr(std::string("m.toml is not a model file: ") + why),
                                                HasSubstr(std::string(". ") + hint))))
        << text;
  };
  refuses(with(3, "heads = 7"), "line 3: 7 heads do not divide a width of 128 (each takes as many columns)",
          "Choose a width that is a multiple of the heads");
  refuses(with(1, "layers = 0"), "line 1: layers: '0' is not a whole number of at least 1",
          "Write a whole number, as in layers = 32");
  refuses(with(2, "width = -128"), "line 2: width: '-128' is not a whole number", "Write");
  refuses(with(4, "ffn = 10.5"), "line 4: ffn: '10.5' is not a whole number", "Write");
  refuses(with(6, "vocabulary = many"), "line 6: vocabulary: 'many' is not a whole number", "Write");
  refuses(with(5, "gated = 1"), "line 5: gated: '1' is neither true nor false", "Write gated = true or gated = false");
  refuses(with(8, "positions = \"some\""), "line 8: positions: 'some' is unknown", "Choose learned or rotary or none");
  refuses(with(10, "norm = \"batch\""), "line 10: norm: 'batch' is unknown", "Choose layer or rms");
  refuses(with(7, "contxt = 64"), "context is missing", "Give layers, width");
  refuses(std::string(kSmall) + "experts = 8\n", "line 11: unknown key 'experts'", "Give layers, width");
  refuses(std::string(kSmall) + "kv_heads = 3\n", "line 11: 3 heads of keys and values do not divide 4 heads",
          "Choose a divisor of the heads");
  refuses(std::string(kSmall) + "[moe]\n", "line 11: unknown section 'moe'", "Give layers, width");
  refuses(with(1, "layers = 1000000"), "line 1: 1000000 layers are too many", "Choose 100000 or fewer");
  refuses(with(2, "width = 1000000000000000"), "line 2: the model has more than 10^15 parameters", "Look for");
  refuses("kind = \"rnn\"\n", "line 1: kind: 'rnn' is unknown", "Choose decoder or mlp");
  refuses("kind = \"mlp\"\nwidths = 7\n", "line 2: widths: '7' is not a list", "Write two or more");
  refuses("kind = \"mlp\"\nwidths = [7]\n", "line 2: widths: 1 is not a list of two or more", "Write two or more");
  refuses("kind = \"mlp\"\nwidths = [7, 0]\n", "line 2: widths: '0' is not a whole number", "Write two or more");
  refuses("kind = \"mlp\"\nwidths = [7, ,2]\n", "line 2: widths: '' is not a whole number", "Write two or more");
  refuses("kind = \"mlp\"\nwidths = [7, 2]\nlayers = 3\n", "line 3: unknown key 'layers'", "Give layers, width");
  refuses("kind = \"mlp\"\nwidths = [1000000000, 1000000000]\n", "line 2: the model has more than 10^15", "Look for");
}

TEST(ModelFile, TakesAHeadsWidthThatIsNoPartOfTheModels) {
  const Architecture a = parse_model(with(3, "heads = 7\nhead_width = 32"), "m");
  EXPECT_EQ(a.heads * a.head_width, 224);
}

TEST(ModelFile, NamesAFileThatIsNotThere) {
  EXPECT_THAT([] { read_model("/nowhere/model.toml"); },
              ThrowsMessage<InputError>(HasSubstr("there is no file /nowhere/model.toml")));
}

TEST(ModelFile, EveryModelThatComesWithTheProgramSaysItsSource) {
  int models = 0;
  for (const auto& entry : std::filesystem::directory_iterator(ANNULET_SOURCE "/configs/models")) {
    const Architecture a = read_model(entry.path().string());
    EXPECT_EQ(a.name, entry.path().stem().string());
    EXPECT_FALSE(a.source.empty()) << a.name;
    EXPECT_GT(parameters(a).total(), 0) << a.name;
    ++models;
  }
  EXPECT_GE(models, 16);
}

}  // namespace
}  // namespace annulet::plan
