#include "annulet/train/config.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "annulet/base/error.hpp"
#include "annulet/base/sum_tree.hpp"
#include "annulet/comm/emulated.hpp"
#include "annulet/train/inject.hpp"

namespace annulet::train {
namespace {

template <class Value>
struct Choice {
  std::string_view name;
  Value value;
};

template <class Value, std::size_t n>
Value choose(std::string_view option, std::string_view wish, const std::array<Choice<Value>, n>& choices) {
  std::string names;
  for (const auto& choice : choices) {
    if (choice.name == wish) return choice.value;
    names += (names.empty() ? "" : ", ") + std::string(choice.name);
  }
  throw InputError({fmt::format("{} = '{}' is unknown", option, wish), "", fmt::format("Choose one of: {}", names)});
}

void require(bool holds, std::string_view option, const auto& value, std::string_view wanted) {
  if (!holds) throw InputError({fmt::format("{} = {} is out of range", option, value), std::string(wanted), ""});
}

double bytes_under_way(const Config& config) {
  const comm::EmulatedLink link = comm::parse_emulated_link(config.emulate);
  return link.latency.count() * link.bandwidth.value();
}

// The rule of schedule/plan_shape.hpp: what is under way during one latency, within bounds.
Bytes segment_for(const Config& config) {
  constexpr double kLeast = 64 << 10, kMost = 4 << 20, kUnlessEmulated = 512 << 10;
  if (config.segment.value() > 0) return config.segment;
  const double wish = config.emulate.empty() ? kUnlessEmulated : bytes_under_way(config);
  return Bytes(static_cast<std::int64_t>(std::clamp(wish, kLeast, kMost)) / 64 * 64);
}

// Segments that fill the link: what is under way during one latency, and one being added.
int slots_for(const Config& config) {
  constexpr int kLocal = 2, kMost = 32;
  if (config.emulate.empty()) return kLocal;
  const double under_way = bytes_under_way(config) / segment_for(config).as_double();
  return static_cast<int>(std::min<double>(kMost, kLocal + std::ceil(under_way)));
}

std::vector<schedule::ExecutionRange> executions(const Config& config) {
  if (config.algorithm == "auto") return {};
  return schedule::parse_execution_ranges(schedule::Collective::all_reduce, config.algorithm);
}

// The reader takes what stands between quotes as it is: there are no escapes.
std::string quoted(const std::string& text) {
  const char quote = text.find('"') == std::string::npos ? '"' : '\'';
  if (text.find('\n') != std::string::npos || text.find(quote) != std::string::npos) {
    throw InputError({fmt::format("'{}' cannot be written to a configuration file", text),
                      "it has a line end, or quotes of both kinds", ""});
  }
  return quote + text + quote;
}

std::string toml_value(const std::string& value) { return quoted(value); }
std::string toml_value(bool value) { return value ? "true" : "false"; }
std::string toml_value(const std::vector<Elements>& value) { return fmt::format("[{}]", fmt::join(value, ", ")); }
std::string toml_value(Bytes value) { return fmt::format("\"{}B\"", value.value()); }
std::string toml_value(const std::optional<Bytes>& value) { return value ? toml_value(*value) : quoted("auto"); }
std::string toml_value(Seconds value) { return fmt::format("\"{}s\"", value.count()); }
std::string toml_value(const auto& number) { return fmt::format("{}", number); }

}  // namespace

nn::MlpOptions mlp_options(const Config& config) {
  using nn::Activation;
  static constexpr std::array<Choice<Activation>, 4> activations{{{"relu", Activation::relu},
                                                                  {"gelu", Activation::gelu},
                                                                  {"gelu_tanh", Activation::gelu_tanh},
                                                                  {"tanh", Activation::tanh}}};
  static constexpr std::array<Choice<nn::Loss>, 2> losses{
      {{"cross_entropy", nn::Loss::cross_entropy}, {"mse", nn::Loss::mse}}};
  return {config.widths, choose("model.activation", config.activation, activations), config.dropout,
          choose("model.loss", config.loss, losses), config.seed};
}

nn::GptOptions gpt_options(const Config& config) {
  static constexpr std::array<Choice<nn::Activation>, 2> gelus{
      {{"erf", nn::Activation::gelu}, {"tanh", nn::Activation::gelu_tanh}}};
  static constexpr std::array<Choice<bool>, 2> initials{{{"normal", false}, {"scaled", true}}};
  nn::GptOptions options;
  options.vocabulary = config.vocabulary, options.context = config.context;
  options.layers = config.layers, options.heads = config.heads, options.width = config.width;
  options.hidden = config.hidden;
  options.bias = config.bias, options.tied = config.tied;
  options.activation = choose("model.gelu", config.gelu, gelus);
  options.dropout = config.dropout;
  options.scaled_residuals = choose("model.initial", config.initial, initials);
  options.recompute = config.recompute, options.seed = config.seed;
  return options;
}

nn::OptimizerOptions optimizer_options(const Config& config) {
  using Options = nn::OptimizerOptions;
  static constexpr std::array<Choice<Options::Kind>, 3> kinds{
      {{"sgd", Options::Kind::sgd}, {"adam", Options::Kind::adam}, {"adamw", Options::Kind::adamw}}};
  static constexpr std::array<Choice<Options::DecayOn>, 2> groups{
      {{"all", Options::DecayOn::all}, {"matrices", Options::DecayOn::matrices}}};
  Options options;
  options.kind = choose("optimizer.kind", config.optimizer, kinds);
  options.momentum = config.momentum, options.nesterov = config.nesterov;
  options.beta1 = config.beta1, options.beta2 = config.beta2, options.epsilon = config.epsilon;
  options.weight_decay = config.decay;
  options.decay_on = choose("optimizer.decay-on", config.decay_on, groups);
  return options;
}

nn::Schedule schedule(const Config& config, long total_steps) {
  using Kind = nn::Schedule::Kind;
  static constexpr std::array<Choice<Kind>, 2> kinds{{{"constant", Kind::constant}, {"cosine", Kind::cosine}}};
  return {choose("optimizer.schedule", config.schedule, kinds), config.lr, config.warmup, total_steps, config.final_lr};
}

parallel::SyncOptions sync_options(const Config& config) {
  const Bytes bucket = config.bucket.value_or(parallel::SyncOptions().bucket);
  const int slots = config.slots > 0 ? config.slots : slots_for(config);
  return {bucket,
          config.first_bucket,
          segment_for(config),
          slots,
          executions(config),
          schedule::parse_compression(config.compress),
          config.reproducible};
}

std::optional<std::vector<schedule::ExecutionRange>> preferred_executions(const Config& config) {
  const auto ranges = executions(config);
  const bool all = ranges.size() == 1 && ranges.front().first == Bytes(0) && ranges.front().last == schedule::kNoLimit;
  return all ? std::nullopt : std::optional(ranges);
}

namespace {

// Options whose meaning begins with the kind that they belong to, "gpt: blocks", would be ignored with another kind.
void refuse_options_of_other_kinds(const Config& config) {
  std::map<std::string, std::string> defaults;
  const Config untouched;
  for_each_option(untouched,
                  [&](const std::string& name, const auto& value, const char*) { defaults[name] = toml_value(value); });
  for_each_option(config, [&](const std::string& name, const auto& value, std::string_view meaning) {
    const std::string_view owner = meaning.substr(0, meaning.find(':'));
    const bool of_model = owner == "mlp" || owner == "gpt";
    const bool of_data = owner == "idx" || owner == "text" || owner == "synthetic";
    const std::string& kind = of_model ? config.model : config.data;
    if ((!of_model && !of_data) || owner == kind || toml_value(value) == defaults[name]) return;
    throw InputError({fmt::format("{} = {} belongs to {}.kind = {}, which is {}", name, toml_value(value),
                                  of_model ? "model" : "data", owner, kind),
                      "it would be ignored", fmt::format("Leave it out, or choose {}", owner)});
  });
}

[[noreturn]] void refuse_compression(const Config& config, std::string_view with, std::string why, std::string hint) {
  throw InputError({fmt::format("compress = {} with {}", config.compress, with), std::move(why), std::move(hint)});
}

}  // namespace

void validate_compression(const Config& config) {
  using Kind = schedule::Compression::Kind;
  const Kind kind = schedule::parse_compression(config.compress).kind;
  if (kind == Kind::none) return;
  const std::string stage = fmt::format("zero = {}", config.zero);
  if (kind == Kind::top_k && config.zero > 0) {
    refuse_compression(config, stage,
                       "sparse gradients are gathered whole by every rank, a shard of them saves nothing",
                       "Choose --zero 0, or --compress bf16");
  }
  if (kind == Kind::top_k && config.algorithm != "ring") {
    refuse_compression(config, fmt::format("algorithm = {}", config.algorithm),
                       "sparse gradients are gathered around the ring, not all-reduced", "Leave out one of the two");
  }
  if (kind == Kind::bfloat16 && config.zero > 2) {
    refuse_compression(config, stage, "most of what stage 3 sends are weights, which travel as they are",
                       "Choose --zero 0, 1 or 2");
  }
  if (kind == Kind::bfloat16 && config.type != "float") {
    refuse_compression(config, fmt::format("type = {}", config.type), "bfloat16 is half of a float",
                       "Choose --type float, or --compress topk:16");
  }
}

void validate_reproducible(const Config& config) {
  require(config.reproducible >= 0 && config.reproducible <= kMostMicroShards, "reproducible", config.reproducible,
          fmt::format("0 for off, or 1 to {} micro-shards", kMostMicroShards));
  if (config.reproducible == 0) return;
  const auto refuse = [&](const std::string& option, std::string why) {
    throw InputError({fmt::format("reproducible = {} with {}", config.reproducible, option), std::move(why),
                      "Leave out one of the two"});
  };
  if (config.algorithm != "ring") {
    refuse("algorithm = " + config.algorithm, "its sums have one order, and plans of their own that keep it");
  }
  if (config.compress != "none") {
    refuse("compress = " + config.compress, "what is rounded or left out depends on which rank has which micro-shards");
  }
}

void validate(const Config& config) {
  static constexpr std::array<Choice<int>, 2> models{{{"mlp", 0}, {"gpt", 0}}};
  static constexpr std::array<Choice<int>, 3> data{{{"idx", 0}, {"text", 0}, {"synthetic", 0}}};
  static constexpr std::array<Choice<int>, 2> types{{{"float", 0}, {"double", 1}}};
  static constexpr std::array<Choice<int>, 4> drivers{{{"blocking", 0}, {"polling", 0}, {"thread", 0}, {"auto", 0}}};
  choose("model.kind", config.model, models);
  choose("data.kind", config.data, data);
  choose("type", config.type, types);
  choose("driver", config.driver, drivers);
  mlp_options(config);
  gpt_options(config);
  const bool reads_text = config.data == "text", is_gpt = config.model == "gpt";
  if (reads_text != is_gpt && config.data != "synthetic") {
    throw InputError({fmt::format("model.kind = {} does not read data.kind = {}", config.model, config.data),
                      "a gpt reads tokens, an mlp features", "Use text with gpt, idx with mlp, or synthetic"});
  }
  refuse_options_of_other_kinds(config);
  optimizer_options(config);
  schedule(config, 1);
  parse_injection(config.inject);
  executions(config);
  constexpr Elements kMost = Elements{1} << 40;  // products of two such counts with a few bytes still fit
  const auto count = [](std::string_view option, Elements value, Elements least) {
    require(value >= least && value <= kMost, option, value, fmt::format("{} to 2^40", least));
  };
  count("steps", config.steps, -1);
  count("epochs", config.epochs, 1);
  count("batch", config.batch, 1);
  count("accumulate", config.accumulate, 1);
  require(config.accumulate <= config.batch, "accumulate", config.accumulate,
          "a micro-batch without samples is work for nothing");
  require(config.zero >= 0 && config.zero < schedule::kZeroStages, "zero", config.zero, "a stage of ZeRO, 0 to 3");
  if (config.zero > 0 && config.algorithm != "ring") {
    throw InputError({fmt::format("zero = {} with algorithm = {}", config.zero, config.algorithm),
                      "a shard is what the ring's reduce-scatter leaves with a rank", "Leave out one of the two"});
  }
  validate_compression(config);
  validate_reproducible(config);
  count("check-replicas", config.check_replicas, 0);
  if (config.check_replicas > 0 && config.zero == 3) {
    throw InputError({"check-replicas with zero = 3", "each weight is kept by one rank: there are no replicas",
                      "Leave out one of the two"});
  }
  count("evaluate-every", config.evaluate_every, 0);
  count("optimizer.warmup", config.warmup, 0);
  count("data.samples", config.samples, 1);
  count("data.test-samples", config.test_samples, 0);
  count("data.classes", config.classes, 0);
  count("model.vocabulary", config.vocabulary, 0);
  for (const auto& [option, size] : {std::pair{"model.context", config.context},
                                     {"model.layers", config.layers},
                                     {"model.heads", config.heads},
                                     {"model.width", config.width}}) {
    count(option, size, 1);
  }
  require(config.width % config.heads == 0, "model.heads", config.heads, "they must divide model.width");
  require(config.dropout >= 0 && config.dropout < 1, "model.dropout", config.dropout, "a share from 0 to below 1");
  count("model.hidden", config.hidden, 0);
  require(config.validation >= 0 && config.validation < 1, "data.validation", config.validation,
          "a share from 0 to below 1");
  require(std::isfinite(config.mean), "data.mean", config.mean, "it is subtracted from every feature");
  require(std::isfinite(config.lr) && config.lr >= 0, "optimizer.lr", config.lr, "steps go downhill");
  require(std::isfinite(config.final_lr) && config.final_lr >= 0, "optimizer.final-lr", config.final_lr,
          "steps go downhill");
  require(config.clip >= 0, "optimizer.clip", config.clip, "a norm is not negative");
  require(std::isfinite(config.deviation) && config.deviation > 0, "data.deviation", config.deviation,
          "features are divided by it");
  const std::int64_t bucket = config.bucket.value_or(Bytes(1)).value();
  require(bucket > 0, "bucket", bucket, "a bucket holds a parameter");
  require(config.first_bucket.value() > 0, "first-bucket", config.first_bucket.value(), "a bucket holds a parameter");
  require(config.slots >= 0 && config.slots <= 64, "slots", config.slots, "0 to 64");
  require(config.deadline.count() > 0, "deadline", config.deadline.count(), "waiting takes time");
  if (!config.emulate.empty()) comm::parse_emulated_link(config.emulate);
}

std::string to_toml(const Config& config) {
  std::string top, sections, section;
  for_each_option(config, [&](const std::string& name, const auto& value, const char*) {
    const std::size_t dot = name.find('.');
    if (dot == std::string::npos) {
      top += fmt::format("{} = {}\n", name, toml_value(value));
      return;
    }
    if (name.substr(0, dot) != section) {
      section = name.substr(0, dot);
      sections += fmt::format("\n[{}]\n", section);
    }
    sections += fmt::format("{} = {}\n", name.substr(dot + 1), toml_value(value));
  });
  return top + sections;
}

}  // namespace annulet::train
