// annulet sample: text from the language model of a run folder. No MPI: every process would say the same.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <optional>

#include "annulet/base/error.hpp"
#include "annulet/train/continuation.hpp"
#include "annulet/train/trainer.hpp"
#include "annulet/train/weights.hpp"
#include "commands.hpp"
#include "config_options.hpp"

namespace annulet::cli {
namespace {

struct SampleOptions {
  std::string run;
  std::optional<std::string> prompt;
  Elements bytes = 500;
  train::ContinuationOptions continuation{.temperature = 0.8};
};

void add_options(CLI::App& app, SampleOptions& o) {
  app.add_option("--run", o.run, "the folder of a run of annulet train (its --out)")->required();
  app.add_option("--prompt", o.prompt,
                 "what the text begins with; unless given, a line end (or the first byte of the vocabulary)");
  app.add_option("--bytes", o.bytes, "how many bytes to add")->capture_default_str()->check(at_least(0));
  app.add_option("--temperature", o.continuation.temperature, "below 1 more likely text, above 1 bolder; 0: no chance")
      ->capture_default_str();
  app.add_option("--top-k", o.continuation.top_k, "draw among so many most probable bytes; 0: all")
      ->capture_default_str();
  app.add_option("--seed", o.continuation.seed, "of the draws")->capture_default_str();
}

train::Config read_config(const std::filesystem::path& file) {
  if (!std::filesystem::is_regular_file(file)) {
    throw InputError({fmt::format("{} is not there", file.string()), "a run of annulet train leaves one in its folder",
                      "Name the --out of such a run"});
  }
  train::Config config;
  CLI::App app("", "annulet train");
  add_config_options(app, config);
  std::string help;
  parse(app, {"--config", file.string()}, help);
  if (config.model == "gpt") return config;
  throw InputError({fmt::format("{}: model.kind = {} speaks no language", file.string(), config.model),
                    "only a gpt foretells the next byte", "Name the folder of a run that trained one"});
}

data::Vocabulary read_vocabulary(const std::filesystem::path& weights) {
  if (!std::filesystem::is_regular_file(weights)) {
    throw InputError({fmt::format("{} is not there", weights.string()), "a run writes its weights at its end",
                      "Name the folder of a run that has ended"});
  }
  if (const auto vocabulary = train::load_vocabulary(weights)) return *vocabulary;
  throw InputError({fmt::format("{} has no vocabulary", weights.string()), "its tokens stand for no bytes",
                    "Train on data.kind = text"});
}

std::string prompt_of(const SampleOptions& options, const data::Vocabulary& vocabulary) {
  if (options.prompt) return *options.prompt;
  for (Elements token = 0; token < vocabulary.size(); ++token) {
    if (vocabulary.byte(token) == '\n') return "\n";
  }
  return std::string(1, static_cast<char>(vocabulary.byte(0)));
}

// Written as it comes.
template <class T>
void speak(const SampleOptions& options, const train::Config& config) {
  const std::filesystem::path weights_file = std::filesystem::path(options.run) / "weights.safetensors";
  const data::Vocabulary vocabulary = read_vocabulary(weights_file);
  const auto model = train::make_model<T>(config, vocabulary.size(), 1);
  std::vector<T> weights(static_cast<std::size_t>(model->layout().size()));
  train::load_weights<T>(weights_file, model->layout(), weights);
  const std::string prompt = prompt_of(options, vocabulary);
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(prompt.data());
  const auto tokens = vocabulary.encode({bytes, prompt.size()}, "the prompt");
  train::ContinuationOptions how = options.continuation;
  how.context = config.context, how.vocabulary = vocabulary.size();
  train::Continuation<T> text(*model, weights, how, {tokens.begin(), tokens.end()});
  print_once(prompt);
  for (Elements i = 0; i < options.bytes; ++i) {
    print_once(std::string(1, static_cast<char>(vocabulary.byte(text.next()))));
  }
  print_once("\n");
}

}  // namespace

int sample(const Arguments& arguments) {
  SampleOptions options;
  CLI::App app("Prints text by the language model of a run folder (config.toml and weights.safetensors).",
               "annulet sample");
  add_options(app, options);
  std::string help;
  if (parse(app, arguments, help) == Parsed::help) return print_once(help), 0;
  if (!first_process()) return 0;
  const train::Config config = read_config(std::filesystem::path(options.run) / "config.toml");
  config.type == "double" ? speak<double>(options, config) : speak<float>(options, config);
  return 0;
}

}  // namespace annulet::cli
