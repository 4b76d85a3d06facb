#include "annulet/plan/architecture.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <set>

#include "annulet/nn/gpt.hpp"
#include "annulet/nn/mlp.hpp"
#include "plan/models.hpp"

namespace annulet::plan {
namespace {

TEST(Parameters, OfLlama7bAreTheDecksAndWithNormsThePublishedOnes) {
  const Parameters counts = parameters(config("llama-7b"));
  EXPECT_EQ(counts.matrices(), 6'738'149'376);
  EXPECT_EQ(counts.total(), 6'738'415'616);
}

TEST(Parameters, AreThePublishedOnes) {
  const auto total = [](const char* name) { return parameters(config(name)).total(); };
  EXPECT_EQ(total("llama-2-13b"), 13'015'864'320);
  EXPECT_EQ(total("llama-2-70b"), 68'976'648'192);
  EXPECT_EQ(total("llama-3-8b"), 8'030'261'248);
  EXPECT_EQ(total("llama-3-70b"), 70'553'706'496);
  EXPECT_EQ(total("llama-3-405b"), 405'853'388'800);
  EXPECT_EQ(total("gpt-2"), 124'439'808);
  EXPECT_EQ(total("gpt-2-medium"), 354'823'168);
  EXPECT_EQ(total("gpt-2-large"), 774'030'080);
  EXPECT_EQ(total("gpt-2-xl"), 1'557'611'200);
  EXPECT_EQ(total("nanogpt-char"), 10'745'088);
}

double billions(Elements count, double unit) { return std::round(static_cast<double>(count) / unit) * unit / 1e9; }

TEST(Parameters, AreThePublishedOnesToTheDigitsPrinted) {
  EXPECT_DOUBLE_EQ(billions(parameters(config("palm-540b")).matrices(), 1e7), 540.35);
  EXPECT_DOUBLE_EQ(billions(parameters(config("gpt-3-175b")).total(), 1e8), 174.6);
  EXPECT_DOUBLE_EQ(billions(parameters(config("mt-nlg-530b")).total(), 1e9), 530);
  EXPECT_DOUBLE_EQ(billions(parameters(config("mt-nlg-530b")).total(), 1e8), 529.6);
}

// Narayanan et al. 2021, table 1, by its equation 2 and by the tensors; the equation leaves the final norm out.
TEST(Parameters, AreThoseOfMegatronsTable) {
  struct Row {
    Elements layers, width;
    double billions;
  };
  const Elements vocabulary = 51'200, positions = 2048;
  for (const auto& [layers, width, printed] : std::initializer_list<Row>{{24, 2304, 1.7},
                                                                         {30, 3072, 3.6},
                                                                         {36, 4096, 7.5},
                                                                         {40, 6144, 18.4},
                                                                         {48, 8192, 39.1},
                                                                         {60, 10240, 76.1},
                                                                         {80, 12288, 145.6},
                                                                         {96, 16384, 310.1},
                                                                         {105, 20480, 529.6},
                                                                         {128, 25600, 1008.0}}) {
    const auto l = static_cast<double>(layers), h = static_cast<double>(width);
    const double equation = 12 * l * h * h * (1 + 13 / (12 * h) + (vocabulary + positions) / (12 * l * h));
    const Elements derived = parameters(gpt(layers, width, vocabulary, positions)).total();
    EXPECT_DOUBLE_EQ(billions(std::llround(equation), 1e8), printed) << width;
    EXPECT_DOUBLE_EQ(billions(derived, 1e8), printed) << width;
    EXPECT_EQ(derived, std::llround(equation) + 2 * width);
  }
}

// MosaicML's MPT models: the N of their throughput tables is GPT's shape with all biases and 50,368 tokens.
TEST(Parameters, AreThoseOfMosaicMlsTable) {
  EXPECT_EQ(parameters(gpt(24, 2048, 50'368, 2048)).total(), 1'315'950'592);
  EXPECT_EQ(parameters(gpt(32, 4096, 50'368, 2048)).total(), 6'658'859'008);
  EXPECT_EQ(parameters(gpt(80, 8192, 50'368, 2048)).total(), 64'862'437'376);
}

TEST(Parameters, AreBrokenDownByPart) {
  const Parameters counts = parameters(config("gpt-2"));
  EXPECT_EQ(counts.embedding, 50257 * 768);
  EXPECT_EQ(counts.positions, 1024 * 768);
  EXPECT_EQ(counts.attention, 12 * 4 * 768 * 768);
  EXPECT_EQ(counts.ffn, 12 * 8 * 768 * 768);
  EXPECT_EQ(counts.norms, 12 * 4 * 768 + 2 * 768);
  EXPECT_EQ(counts.biases, 12 * (4 + 5) * 768);
  EXPECT_EQ(counts.head, 0);
  const Parameters grouped = parameters(config("llama-3-8b"));
  EXPECT_EQ(grouped.attention, 32 * (2 * 4096 * 4096 + 2 * 4096 * 8 * 128));
  EXPECT_EQ(grouped.ffn, Elements{32} * 3 * 4096 * 14336);
  EXPECT_EQ(grouped.head, 128'256 * 4096);
  EXPECT_EQ(grouped.biases, 0);
}

TEST(Parameters, OfAHeadsBiasAreCountedTiedOrNot) {
  Architecture a = gpt(2, 64, 100, 16);
  const Elements before = parameters(a).total();
  a.head_bias = true;
  EXPECT_EQ(parameters(a).total(), before + 100);
  a.tied = false;
  EXPECT_EQ(parameters(a).total(), before + 100 + 100 * 64);
}

void expect_as_laid_out(const Architecture& architecture, const nn::Layout& layout) {
  const std::vector<ModelTensor> ours = tensors(architecture);
  ASSERT_EQ(ours.size(), layout.tensors().size());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    EXPECT_EQ(ours[i].name, layout.tensors()[i].name);
    EXPECT_EQ(ours[i].elements, layout.tensors()[i].count) << ours[i].name;
  }
  EXPECT_EQ(parameters(architecture).total(), layout.size());
  std::vector<std::size_t> of_layout;
  for (const nn::Tensor& tensor : layout.tensors()) of_layout.push_back(tensor.layer);
  EXPECT_EQ(layers(architecture), of_layout);
}

TEST(Tensors, OfThePeerGptAreTheEnginesInItsOrder) {
  const nn::GptOptions options{
      .vocabulary = 65, .context = 64, .layers = 4, .width = 128, .bias = false, .tied = false};
  const auto model = nn::make_gpt<float>(options, 1);
  EXPECT_EQ(model->layout().size(), 813'568);
  expect_as_laid_out(config("peer-gpt"), model->layout());
}

TEST(Tensors, OfATiedGptWithBiasesAreTheEnginesInItsOrder) {
  const nn::GptOptions options{.vocabulary = 70, .context = 8, .layers = 3, .heads = 2, .width = 128};
  expect_as_laid_out(gpt(3, 128, 70, 8), nn::make_gpt<float>(options, 1)->layout());
}

TEST(Tensors, OfThePeerMlpAreTheEnginesInItsOrder) {
  const auto model = nn::make_mlp<float>({.widths = {784, 1024, 1024, 10}}, 1);
  EXPECT_EQ(model->layout().size(), 1'863'690);
  expect_as_laid_out(config("peer-mlp"), model->layout());
}

TEST(Tensors, OfLlamaRunFromTheHeadToTheEmbedding) {
  Architecture a = config("llama-3-8b");
  a.layers = 1;
  std::vector<std::string> names;
  for (const ModelTensor& tensor : tensors(a)) names.push_back(tensor.name);
  EXPECT_THAT(names,
              testing::ElementsAre("lm_head.weight", "model.norm.weight", "model.layers.0.mlp.down_proj.weight",
                                   "model.layers.0.mlp.up_proj.weight", "model.layers.0.mlp.gate_proj.weight",
                                   "model.layers.0.post_attention_layernorm.weight",
                                   "model.layers.0.self_attn.o_proj.weight", "model.layers.0.self_attn.v_proj.weight",
                                   "model.layers.0.self_attn.k_proj.weight", "model.layers.0.self_attn.q_proj.weight",
                                   "model.layers.0.input_layernorm.weight", "model.embed_tokens.weight"));
}

TEST(Tensors, HaveNamesOfTheirOwn) {
  for (const char* name : {"llama-3-70b", "palm-540b", "gpt-2-xl"}) {
    std::set<std::string> names;
    const std::vector<ModelTensor> all = tensors(config(name));
    for (const ModelTensor& tensor : all) names.insert(tensor.name);
    EXPECT_EQ(names.size(), all.size()) << name;
  }
}

TEST(Tensors, KnowTheirBlock) {
  const std::vector<ModelTensor> all = tensors(config("palm-540b"));
  EXPECT_EQ(all.front().block, -1);
  EXPECT_EQ(all.back().block, -1);
  std::vector<Elements> per_block(118);
  for (const ModelTensor& tensor : all) {
    if (tensor.block >= 0) ++per_block.at(static_cast<std::size_t>(tensor.block));
  }
  EXPECT_THAT(per_block, testing::Each(8));  // three of the FFN, four of the attention, one norm
}

}  // namespace
}  // namespace annulet::plan
