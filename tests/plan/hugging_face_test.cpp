#include <gmock/gmock.h>

#include "annulet/base/error.hpp"
#include "annulet/plan/model_file.hpp"
#include "base/temporary_folder.hpp"

namespace annulet::plan {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

// As the published models have it.
constexpr const char* kLlama3 = R"({
  "architectures": [
    "LlamaForCausalLM"
  ],
  "attention_bias": false,
  "attention_dropout": 0.0,
  "bos_token_id": 128000,
  "eos_token_id": 128001,
  "hidden_act": "silu",
  "hidden_size": 4096,
  "initializer_range": 0.02,
  "intermediate_size": 14336,
  "max_position_embeddings": 8192,
  "model_type": "llama",
  "num_attention_heads": 32,
  "num_hidden_layers": 32,
  "num_key_value_heads": 8,
  "pretraining_tp": 1,
  "rms_norm_eps": 1e-05,
  "rope_scaling": {"factor": 8.0, "hidden_size": 7},
  "rope_theta": 500000.0,
  "tie_word_embeddings": false,
  "torch_dtype": "bfloat16",
  "transformers_version": "4.40.0.dev0",
  "use_cache": true,
  "vocab_size": 128256
}
)";

constexpr const char* kMistral = R"({
  "architectures": ["MistralForCausalLM"],
  "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02,
  "intermediate_size": 14336, "max_position_embeddings": 32768, "model_type": "mistral", "num_attention_heads": 32,
  "num_hidden_layers": 32, "num_key_value_heads": 8, "rms_norm_eps": 1e-05, "rope_theta": 10000.0,
  "sliding_window": 4096, "tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.34.0",
  "use_cache": true, "vocab_size": 32000
})";

constexpr const char* kGpt2 = R"({
  "activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1, "bos_token_id": 50256,
  "embd_pdrop": 0.1, "eos_token_id": 50256, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05,
  "model_type": "gpt2", "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024,
  "resid_pdrop": 0.1, "summary_activation": null, "summary_first_dropout": 0.1, "summary_proj_to_labels": true,
  "summary_type": "cls_index", "summary_use_proj": true,
  "task_specific_params": {"text-generation": {"do_sample": true, "max_length": 50}}, "vocab_size": 50257
})";

// `text` with the first `from` replaced.
std::string changed(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

Elements total(const std::string& text) { return parameters(parse_hugging_face(text, "config.json")).total(); }

TEST(HuggingFace, ModelsHaveTheirPublishedParameters) {
  EXPECT_EQ(total(kLlama3), 8'030'261'248);
  EXPECT_EQ(total(kMistral), 7'241'732'096);
  EXPECT_EQ(total(kGpt2), 124'439'808);
}

TEST(HuggingFace, DefaultsAreThoseOfItsClasses) {
  const Elements width = 4096, ungrouped = 32 * 2 * (4096 - 1024) * width;
  EXPECT_EQ(total(changed(kLlama3, "\"num_key_value_heads\": 8,", "")), 8'030'261'248 + ungrouped);
  EXPECT_EQ(total(changed(kMistral, "\"num_key_value_heads\": 8,", "")), 7'241'732'096);
  EXPECT_EQ(total(changed(kMistral, "\"num_key_value_heads\": 8", "\"num_key_value_heads\": null")),
            7'241'732'096 + ungrouped);
  EXPECT_EQ(total(changed(kLlama3, "\"tie_word_embeddings\": false,", "")), 8'030'261'248);
  EXPECT_EQ(total(changed(kGpt2, "\"n_ctx\"", "\"n_inner\": null, \"n_ctx\"")), 124'439'808);
}

TEST(HuggingFace, FieldsThatChangeTheModelAreCounted) {
  EXPECT_EQ(total(changed(kLlama3, "\"tie_word_embeddings\": false", "\"tie_word_embeddings\": true")),
            8'030'261'248 - Elements{128'256} * 4096);
  EXPECT_EQ(total(changed(kLlama3, "\"attention_bias\": false", "\"attention_bias\": true")),
            8'030'261'248 + 32 * (2 * 4096 + 2 * 1024));
  EXPECT_EQ(total(changed(kLlama3, "\"pretraining_tp\": 1", "\"mlp_bias\": true")),
            8'030'261'248 + 32 * (2 * 14'336 + 4096));
  EXPECT_EQ(total(changed(kLlama3, "\"pretraining_tp\": 1", "\"head_dim\": 64")),
            8'030'261'248 - Elements{32} * 64 * (2 * 32 + 2 * 8) * 4096);
  EXPECT_EQ(total(changed(kGpt2, "\"n_ctx\": 1024", "\"tie_word_embeddings\": false")), 124'439'808 + 50'257 * 768);
  EXPECT_EQ(total(changed(kGpt2, "\"n_ctx\": 1024", "\"n_inner\": 768")), 124'439'808 - 12 * (6 * 768 * 768 + 3 * 768));
}

TEST(HuggingFace, FieldsThatChangeNothingArePassedOver) {
  for (const char* harmless : {"\"rope_scaling\": null", "\"_name_or_path\": \"x\"", "\"quantization_config\": null",
                               "\"num_local_experts\": null", "\"use_bias\": false", "\"pruned_heads\": {}"}) {
    EXPECT_EQ(total(changed(kLlama3, "\"pretraining_tp\": 1", harmless)), 8'030'261'248) << harmless;
  }
}

TEST(HuggingFace, AConfigIsRefusedByFieldLineAndWhatToTry) {
  const auto refuses = [](const std::string& text, const char* why, const char* hint) {
    EXPECT_THAT([&] { parse_hugging_face(text, "m/config.json"); },
                ThrowsMessage<InputError>(AllOf(HasSubstr(why), HasSubstr(std::string(". ") + hint))))
        << text;
  };
  const auto with = [](const char* field) { return changed(kLlama3, "\"pretraining_tp\": 1", field); };
  refuses(with("\"num_local_experts\": 8"),
          "m/config.json cannot be taken as a model: line 18: num_local_experts is not accounted for (it may change "
          "parameters or operations)",
          "Remove it from a copy");
  refuses(with("\"quantization_config\": {\"bits\": 4}"), "line 18: quantization_config is not accounted for",
          "Remove");
  refuses(with("\"auto_map\": {\"AutoModel\": \"x\"}"), "line 18: auto_map is not accounted for", "Remove");
  refuses(changed(kGpt2, "\"n_ctx\": 1024", "\"add_cross_attention\": true"), "add_cross_attention is not", "Remove");
  refuses(changed(kMistral, "\"use_cache\"", "\"attention_bias\""), "attention_bias is not accounted for", "Remove");
  refuses(changed(kLlama3, "\"llama\"", "\"mixtral\""), "line 14: model_type: 'mixtral' is not llama, mistral or gpt2",
          "Describe the model");
  refuses(changed(kLlama3, "\"model_type\": \"llama\",", ""), "a model: model_type is missing", "Describe");
  refuses(changed(kLlama3, "\"hidden_size\": 4096,", ""), "a model: hidden_size is missing", "Describe");
  refuses(changed(kLlama3, "LlamaForCausalLM", "LlamaForSequenceClassification"),
          "line 2: architectures: \"LlamaForSequenceClassification\" is not a language model", "Describe");
  refuses(changed(kLlama3, "\"num_attention_heads\": 32", "\"num_attention_heads\": 7"),
          "line 15: num_attention_heads: 7 heads do not divide a width of 4096", "Choose a width");
  refuses(changed(kLlama3, "\"num_key_value_heads\": 8", "\"num_key_value_heads\": 5"),
          "line 17: num_key_value_heads: 5 heads of keys and values do not divide 32 heads", "Choose a divisor");
  refuses(changed(kLlama3, "\"num_hidden_layers\": 32", "\"num_hidden_layers\": 0"),
          "line 16: num_hidden_layers: 0 is not a whole number of at least 1", "Write one");
  refuses(changed(kLlama3, "\"vocab_size\": 128256", "\"vocab_size\": -1"), "vocab_size: -1 is not", "Write one");
  refuses(changed(kLlama3, "\"vocab_size\": 128256", "\"vocab_size\": 1.5"), "vocab_size: 1.5 is not", "Write one");
  refuses(changed(kLlama3, "\"vocab_size\": 128256", "\"vocab_size\": \"128256\""), "vocab_size: \"128256\" is",
          "Write");
  refuses(changed(kLlama3, "\"tie_word_embeddings\": false", "\"tie_word_embeddings\": 0"),
          "line 22: tie_word_embeddings: 0 is neither true nor false", "Write");
  refuses(changed(kGpt2, "\"n_head\": 12", "\"n_head\": 7"), "line 4: n_head: 7 heads do not divide", "Choose a width");
  refuses("{\"model_type\": \"llama\",}", "m/config.json is not JSON", "Name a config.json");
  refuses("[1]", "m/config.json is not a JSON object", "Describe");
}

TEST(HuggingFace, AModelIsReadFromItsFileOrFolderAndNamedAsTheFolder) {
  const test::TemporaryFolder folder;
  std::filesystem::create_directory(folder / "my-llama");
  const std::filesystem::path file = folder.write("my-llama/config.json", kLlama3);
  for (const std::filesystem::path& path : {file, folder / "my-llama"}) {
    const Architecture a = read_model(path.string());
    EXPECT_EQ(a.name, "my-llama");
    EXPECT_EQ(a.source, file.string());
    EXPECT_EQ(a.kv_heads, 8);
    EXPECT_EQ(a.head_width, 128);
    EXPECT_EQ(a.context, 8192);
  }
  EXPECT_THAT([&] { read_model(folder.write("x", "").parent_path().string()); },
              ThrowsMessage<InputError>(HasSubstr("config.json cannot be read")));
}

}  // namespace
}  // namespace annulet::plan
