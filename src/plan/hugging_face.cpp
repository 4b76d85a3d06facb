// The config.json that Hugging Face's transformers keeps beside a model's weights. What it leaves out is as in that
// library's classes (configuration_llama.py, configuration_mistral.py, configuration_gpt2.py). A field that neither
// gives a size nor is known to change none is refused: a wrong count is worse than none.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "annulet/base/error.hpp"
#include "annulet/plan/model_file.hpp"
#include "model_check.hpp"

namespace annulet::plan {
namespace {

using nlohmann::json;

constexpr double kMostCount = 1e12;
constexpr const char* kDescribeIt = "Describe the model in a file like those in configs/models";

// What changes neither parameters nor operations, by its whole name, how it begins, and how it ends.
constexpr std::array<std::string_view, 28> kHarmless{"architectures",
                                                     "model_type",
                                                     "use_cache",
                                                     "pretraining_tp",
                                                     "hidden_act",
                                                     "activation_function",
                                                     "n_ctx",
                                                     "layer_types",
                                                     "initializer_range",
                                                     "id2label",
                                                     "label2id",
                                                     "task_specific_params",
                                                     "output_attentions",
                                                     "output_hidden_states",
                                                     "return_dict",
                                                     "scale_attn_weights",
                                                     "reorder_and_upcast_attn",
                                                     "scale_attn_by_inverse_layer_idx",
                                                     "gradient_checkpointing",
                                                     "problem_type",
                                                     "tokenizer_class",
                                                     "is_decoder",
                                                     "max_length",
                                                     "max_new_tokens",
                                                     "do_sample",
                                                     "temperature",
                                                     "top_k",
                                                     "top_p"};
constexpr std::array<std::string_view, 6> kHarmlessBeginnings{
    "_", "rope_", "summary_", "attn_implementation", "sliding_window", "use_sliding_window"};
constexpr std::array<std::string_view, 7> kHarmlessEndings{"_token_id", "_eps",  "_epsilon", "_dropout",
                                                           "_pdrop",    "dtype", "_version"};

bool is_harmless(std::string_view field) {
  return std::ranges::find(kHarmless, field) != kHarmless.end() ||
         std::ranges::any_of(kHarmlessBeginnings, [&](std::string_view part) { return field.starts_with(part); }) ||
         std::ranges::any_of(kHarmlessEndings, [&](std::string_view part) { return field.ends_with(part); });
}

bool is_off(const json& value) {
  return value.is_null() || (value.is_boolean() && !value.get<bool>()) || (value.is_structured() && value.empty());
}

std::size_t end_of_string(std::string_view text, std::size_t at) {
  while (at < text.size() && text[at] != '"') at += text[at] == '\\' ? 2U : 1U;
  return std::min(at, text.size());
}

// Of a field of the outermost object of valid JSON; 0: it has none.
int line_of(std::string_view text, std::string_view field) {
  int line = 1, depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') ++line;
    if (text[i] == '{' || text[i] == '[') ++depth;
    if (text[i] == '}' || text[i] == ']') --depth;
    if (text[i] != '"') continue;
    const std::size_t first = i + 1;
    i = end_of_string(text, first);
    const std::size_t next = std::min(text.find_first_not_of(" \t\r\n", i + 1), text.size() - 1);
    if (depth == 1 && text[next] == ':' && text.substr(first, i - first) == field) return line;
  }
  return 0;
}

class ConfigJson {
 public:
  ConfigJson(std::string_view text, std::string name) : text_(text), name_(std::move(name)) {
    try {
      fields_ = json::parse(text);
    } catch (const json::exception& error) {
      throw InputError({name_ + " is not JSON", error.what(), "Name a config.json of Hugging Face's"});
    }
    if (!fields_.is_object()) throw InputError({name_ + " is not a JSON object", "", kDescribeIt});
  }

  Elements count(const std::string& field) {
    const auto value = count_if_any(field);
    if (!value) refuse(field, field + " is missing", kDescribeIt);
    return *value;
  }

  Elements count_or(const std::string& field, Elements otherwise) { return count_if_any(field).value_or(otherwise); }

  bool flag_or(const std::string& field, bool otherwise) {
    const json* value = find(field);
    if (value == nullptr || value->is_null()) return otherwise;
    if (!value->is_boolean())
      refuse(field, fmt::format("{}: {} is neither true nor false", field, value->dump()), "Write true or false");
    return value->get<bool>();
  }

  std::string text(const std::string& field) {
    const json* value = find(field);
    if (value == nullptr) refuse(field, field + " is missing", kDescribeIt);
    if (!value->is_string()) refuse(field, fmt::format("{}: {} is no name", field, value->dump()), kDescribeIt);
    return value->get<std::string>();
  }

  const json* find(const std::string& field) {
    used_.insert(field);
    const auto found = fields_.find(field);
    return found == fields_.end() ? nullptr : &*found;
  }

  void require_all_accounted_for() const {
    for (const auto& [field, value] : fields_.items()) {
      if (used_.contains(field) || is_harmless(field) || is_off(value)) continue;
      refuse(field, fmt::format("{} is not accounted for (it may change parameters or operations)", field),
             "Remove it from a copy of the file if it changes neither, or describe the model in a file like those in "
             "configs/models");
    }
  }

  [[noreturn]] void refuse(const std::string& field, const std::string& what, const std::string& hint) const {
    const int line = line_of(text_, field);
    const std::string place = line > 0 ? fmt::format("line {}: ", line) : "";
    throw InputError({fmt::format("{} cannot be taken as a model: {}{}", name_, place, what), "", hint});
  }

 private:
  std::optional<Elements> count_if_any(const std::string& field) {
    const json* value = find(field);
    if (value == nullptr || value->is_null()) return std::nullopt;
    if (value->is_number_integer() && value->get<double>() >= 1 && value->get<double>() <= kMostCount) {
      return value->get<Elements>();
    }
    refuse(field, fmt::format("{}: {} is not a whole number of at least 1", field, value->dump()),
           fmt::format("Write one, as in \"{}\": 32", field));
  }

  std::string_view text_;
  std::string name_;
  json fields_;
  std::set<std::string> used_;
};

// The fields by the names that objections use.
struct FieldNames {
  std::string layers, width, heads, kv_heads;

  const std::string& operator[](std::string_view field) const {
    return field == "layers" ? layers : field == "heads" ? heads : field == "kv_heads" ? kv_heads : width;
  }
};

const FieldNames kLlamaFields{"num_hidden_layers", "hidden_size", "num_attention_heads", "num_key_value_heads"};
const FieldNames kGpt2Fields{"n_layer", "n_embd", "n_head", ""};

void read_llama(ConfigJson& file, Architecture& a) {
  a.layers = file.count("num_hidden_layers"), a.width = file.count("hidden_size");
  a.heads = file.count("num_attention_heads"), a.kv_heads = file.count_or("num_key_value_heads", 0);
  a.head_width = file.count_or("head_dim", 0);
  a.ffn = file.count("intermediate_size"), a.gated = true;
  a.vocabulary = file.count("vocab_size"), a.context = file.count("max_position_embeddings");
  a.tied = file.flag_or("tie_word_embeddings", false);
  a.norm = Norm::rms;
}

void read_gpt2(ConfigJson& file, Architecture& a) {
  a.layers = file.count("n_layer"), a.width = file.count("n_embd"), a.heads = file.count("n_head");
  a.ffn = file.count_or("n_inner", 4 * a.width);
  a.vocabulary = file.count("vocab_size");
  a.positions = a.context = file.count("n_positions");
  a.tied = file.flag_or("tie_word_embeddings", true);
  a.norm = Norm::layer, a.norm_bias = a.attention_bias = a.ffn_bias = true;
}

const FieldNames& read_family(ConfigJson& file, Architecture& a) {
  const std::string family = file.text("model_type");
  if (family == "gpt2") return read_gpt2(file, a), kGpt2Fields;
  if (family != "llama" && family != "mistral") {
    file.refuse("model_type", fmt::format("model_type: '{}' is not llama, mistral or gpt2", family), kDescribeIt);
  }
  read_llama(file, a);
  if (family == "llama") {
    a.attention_bias = file.flag_or("attention_bias", false), a.ffn_bias = file.flag_or("mlp_bias", false);
  } else if (file.find("num_key_value_heads") == nullptr) {
    a.kv_heads = 8;
  }
  return kLlamaFields;
}

// A classifier, or a model without a head, has other parameters than a language model.
void require_language_model(ConfigJson& file) {
  const json* classes = file.find("architectures");
  if (classes == nullptr || !classes->is_array() || classes->empty()) return;
  const std::string first = classes->front().is_string() ? classes->front().get<std::string>() : "";
  if (first.ends_with("ForCausalLM") || first.ends_with("LMHeadModel")) return;
  file.refuse("architectures", fmt::format("architectures: {} is not a language model", classes->front().dump()),
              kDescribeIt);
}

std::string model_name(const std::filesystem::path& path) {
  if (path.filename() != "config.json") return path.stem().string();
  const std::string folder = std::filesystem::absolute(path).lexically_normal().parent_path().filename().string();
  return folder.empty() ? "config" : folder;
}

}  // namespace

Architecture parse_hugging_face(std::string_view text, const std::string& name) {
  ConfigJson file(text, name);
  Architecture architecture;
  architecture.name = model_name(name), architecture.source = name;
  const FieldNames& names = read_family(file, architecture);
  require_language_model(file);
  file.require_all_accounted_for();
  if (const auto objection = complete(architecture)) {
    const std::string& field = names[objection->field];
    file.refuse(field, fmt::format("{}: {}", field, objection->what), objection->hint);
  }
  return architecture;
}

}  // namespace annulet::plan
