#include "annulet/plan/model_file.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "annulet/base/config_folder.hpp"
#include "annulet/base/settings_file.hpp"
#include "model_check.hpp"

namespace annulet::plan {
namespace {

namespace fs = std::filesystem;

const SettingsKind kKind{"model file",
                         "Give layers, width, heads, ffn, gated, vocabulary, context, positions, tied and norm, or "
                         "kind = \"mlp\" and widths, as the files in configs/models do",
                         {}};

template <class Value>
using Choices = std::vector<std::pair<std::string_view, Value>>;

class Reader {
 public:
  Reader(std::string_view text, const std::string& name) : file_(text, name, kKind) {}

  std::string text(const char* key) {
    const auto* entry = file_.find("", key);
    return entry == nullptr ? "" : entry->value;
  }

  Elements count(const char* key) { return value(key, required(key), one_or_more, kCountHint); }

  Elements count_or(const char* key, Elements otherwise) {
    const auto* entry = file_.find("", key);
    return entry == nullptr ? otherwise : value(key, *entry, one_or_more, kCountHint);
  }

  bool flag(const char* key) { return value(key, required(key), parse_bool, kFlagHint); }

  bool flag_or(const char* key, bool otherwise) {
    const auto* entry = file_.find("", key);
    return entry == nullptr ? otherwise : value(key, *entry, parse_bool, kFlagHint);
  }

  template <class Value>
  Value choice(const char* key, const Choices<Value>& choices) {
    return choice(key, required(key), choices);
  }

  template <class Value>
  Value choice_or(const char* key, const Choices<Value>& choices, Value otherwise) {
    const auto* entry = file_.find("", key);
    return entry == nullptr ? otherwise : choice(key, *entry, choices);
  }

  std::vector<Elements> counts(const char* key) { return value(key, required(key), one_or_more_each, kCountsHint); }

  void finish(Architecture& architecture) {
    file_.require_all_used();
    const auto objection = complete(architecture);
    if (objection) file_.refuse(required(objection->field), objection->what, objection->hint);
  }

 private:
  static constexpr const char* kCountHint = "Write a whole number, as in {} = 32";
  static constexpr const char* kFlagHint = "Write {0} = true or {0} = false";
  static constexpr const char* kCountsHint = "Write two or more, from inputs to outputs, as in {} = [784, 1024, 10]";

  static Elements one_or_more(std::string_view text) { return parse_count(text, 1); }
  static std::vector<Elements> one_or_more_each(std::string_view text);

  const SettingsFile::Entry& required(const std::string& key) {
    const auto* entry = file_.find("", key);
    if (entry == nullptr) file_.refuse(key + " is missing");
    return *entry;
  }

  template <class Value>
  Value value(const char* key, const SettingsFile::Entry& entry, Value (*parse)(std::string_view), const char* hint) {
    try {
      return parse(entry.value);
    } catch (const InputError& error) {
      file_.refuse(entry, fmt::format("{}: {}", key, error.what()), fmt::format(fmt::runtime(hint), key));
    }
  }

  template <class Value>
  Value choice(const char* key, const SettingsFile::Entry& entry, const Choices<Value>& choices) {
    std::vector<std::string_view> names;
    for (const auto& [name, chosen] : choices) {
      if (name == entry.value) return chosen;
      names.push_back(name);
    }
    file_.refuse(entry, fmt::format("{}: '{}' is unknown", key, entry.value),
                 fmt::format("Choose {}", fmt::join(names, " or ")));
  }

  SettingsFile file_;
};

std::vector<Elements> Reader::one_or_more_each(std::string_view text) {
  if (!text.starts_with('[') || !text.ends_with(']')) throw InputError({fmt::format("'{}' is not a list", text)});
  std::vector<Elements> numbers;
  for (text = text.substr(1, text.size() - 2); !text.empty();) {
    const std::size_t end = std::min(text.find(','), text.size());
    const std::size_t first = std::min(text.find_first_not_of(' '), end);
    const std::string_view item = text.substr(first, end - first);
    numbers.push_back(one_or_more(item.substr(0, item.find_last_not_of(' ') + 1)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (numbers.size() < 2) throw InputError({fmt::format("{} is not a list of two or more", numbers.size())});
  return numbers;
}

void read_decoder(Reader& file, Architecture& a) {
  enum class Positions { learned, rotary, none };
  a.layers = file.count("layers"), a.width = file.count("width"), a.heads = file.count("heads");
  a.kv_heads = file.count_or("kv_heads", 0), a.head_width = file.count_or("head_width", 0);
  a.ffn = file.count("ffn"), a.gated = file.flag("gated"), a.parallel = file.flag_or("parallel", false);
  a.vocabulary = file.count("vocabulary"), a.context = file.count("context"), a.tied = file.flag("tied");
  const auto positions = file.choice<Positions>(
      "positions", {{"learned", Positions::learned}, {"rotary", Positions::rotary}, {"none", Positions::none}});
  if (positions == Positions::learned) a.positions = a.context;
  a.norm = file.choice<Norm>("norm", {{"layer", Norm::layer}, {"rms", Norm::rms}});
  a.norm_bias = file.flag_or("norm_bias", a.norm == Norm::layer);
  const bool bias = file.flag_or("bias", false);
  a.attention_bias = file.flag_or("attention_bias", bias), a.ffn_bias = file.flag_or("ffn_bias", bias);
  a.head_bias = file.flag_or("head_bias", false);
}

}  // namespace

Architecture parse_model(std::string_view text, const std::string& name) {
  Reader file(text, name);
  Architecture architecture;
  architecture.name = fs::path(name).stem().string(), architecture.source = file.text("source");
  architecture.kind = file.choice_or<Kind>("kind", {{"decoder", Kind::decoder}, {"mlp", Kind::mlp}}, Kind::decoder);
  if (architecture.kind == Kind::mlp) {
    architecture.widths = file.counts("widths");
  } else {
    read_decoder(file, architecture);
  }
  file.finish(architecture);
  return architecture;
}

Architecture read_model(const std::string& name) {
  fs::path path = find_config("models", name);
  std::error_code error;
  if (fs::is_directory(path, error)) path /= "config.json";
  const std::string text = read_settings_text(path, "model file");
  return path.extension() == ".json" ? parse_hugging_face(text, path.string()) : parse_model(text, path.string());
}

}  // namespace annulet::plan
