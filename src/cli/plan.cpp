// annulet plan: what data-parallel training costs, from files alone. Finds the topic and prints its answer; no MPI.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "plan_topics.hpp"

namespace annulet::cli {
namespace {

struct Topic {
  std::string_view name;
  std::string_view meaning;
  std::unique_ptr<PlanTopic> (*make)();
};

constexpr std::array kTopics{
    Topic{"collectives", "time and bytes of every collective and algorithm", collectives_topic},
    Topic{"memory", "what a rank holds and sends at each stage of ZeRO", memory_topic},
    Topic{"step", "the time of a step, what of it waits, MFU and HFU", step_topic},
    Topic{"compress", "when sparse or narrow gradients pay", compress_topic},
    Topic{"bucket", "step time against bucket size", bucket_topic},
    Topic{"scale", "step time, efficiency and what limits them, by ranks", scale_topic},
    Topic{"advise", "which stage, bucket, algorithm and micro-batch to take", advise_topic},
    Topic{"deck", "every published figure that this program knows, beside its own", deck_topic}};

std::string topics() {
  std::string text =
      "annulet plan: what data-parallel training will cost, before anyone rents the machines\n\nUsage: annulet plan "
      "TOPIC ...\n\n";
  for (const Topic& topic : kTopics) text += fmt::format("  {:<12} {}\n", topic.name, topic.meaning);
  return text + "\nannulet plan TOPIC --help explains a topic. Every topic takes --explain, --json and --csv.\n";
}

int answer(const Topic& topic, const Arguments& arguments) {
  const std::unique_ptr<PlanTopic> question = topic.make();
  OutputOptions output;
  std::string meaning(topic.meaning);
  meaning.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(meaning.front())));
  CLI::App app(meaning + '.', fmt::format("annulet plan {}", topic.name));
  question->add_options(app);
  output.add(app);
  std::string help;
  if (parse(app, arguments, help) == Parsed::help) return print_once(help), 0;
  return output.print(question->answer());
}

}  // namespace

int plan(const Arguments& arguments) {
  if (arguments.empty()) return print_error_once(topics()), 2;
  const std::string& name = arguments.front();
  if (name == "--help" || name == "-h") return print_once(topics()), 0;
  const auto topic = std::ranges::find(kTopics, name, &Topic::name);
  if (topic != kTopics.end()) return answer(*topic, {arguments.begin() + 1, arguments.end()});
  print_error_once(fmt::format("annulet plan: '{}' is not a topic. See annulet plan --help.", name));
  return 2;
}

}  // namespace annulet::cli
