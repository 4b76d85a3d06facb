#include "plan_options.hpp"

#include <fmt/format.h>

#include "annulet/base/atomic_file.hpp"
#include "annulet/base/error.hpp"
#include "annulet/cost/machine.hpp"
#include "annulet/plan/model_file.hpp"
#include "annulet/report/answer_text.hpp"
#include "config_options.hpp"

namespace annulet::cli {
namespace {

// An option that stays empty unless given.
template <class Value>
void add_optional(CLI::App& app, const std::string& flag, std::optional<Value>& value, Value (*read)(std::string_view),
                  const char* type, const std::string& meaning) {
  const auto store = [&value, read, flag](const std::string& text) {
    value = read_option(flag, [&] { return read(text); });
  };
  app.add_option_function<std::string>(flag, store, meaning)->type_name(type);
}

void add_file(CLI::App& app, const std::string& flag, std::optional<std::string>& file, const std::string& meaning) {
  app.add_option_function<std::vector<std::string>>(
         flag, [&file](const std::vector<std::string>& names) { file = names.empty() ? "" : names.front(); }, meaning)
      ->expected(0, 1)
      ->type_name("[FILE]");
}

}  // namespace

void without(CLI::App& app, std::initializer_list<const char*> flags) {
  for (const char* flag : flags) app.remove_option(app.get_option(flag));
}

void OutputOptions::add(CLI::App& app) {
  add_file(app, "--json", json, "the answer as JSON, to FILE or instead of the table");
  add_file(app, "--csv", csv, "the answer as comma-separated values, to FILE or instead of the table");
  app.add_flag("--explain", explain, "formula, inputs and result of each figure");
}

int OutputOptions::print(const plan::Answer& answer) const {
  bool shown = false;
  const auto give = [&](const std::optional<std::string>& file, const std::string& text) {
    if (!file) return;
    if (file->empty()) {
      print_once(text), shown = true;
    } else {
      write_atomically(*file, text);
    }
  };
  if (json) give(json, report::answer_json(answer));
  if (csv) give(csv, report::answer_csv(answer));
  if (!shown) print_once(report::answer_text(answer, explain));
  return answer.holds ? 0 : 1;
}

void ModelOptions::add(CLI::App& app) {
  app.add_option("--model", model, "a model of configs/models, a file like those, or a Hugging Face config.json")
      ->required();
  app.add_option("--sequence", sequence, "tokens of a sequence; 0: the model's context")
      ->capture_default_str()
      ->check(at_least(0));
  app.add_flag("--recompute", recompute, "activations of a block are computed again in backward");
  app.add_flag("--attention,!--no-attention", attention,
               "count the attention's products (12 L H Q T a token) among the operations; the default");
}

plan::Architecture ModelOptions::architecture() const { return plan::read_model(model); }

plan::Work ModelOptions::work() const {
  const auto what = recompute ? plan::Recomputation::blocks : plan::Recomputation::none;
  return plan::work_of(architecture(), what, {.attention = attention, .sequence = sequence});
}

void MachineOptions::add(CLI::App& app) {
  app.add_option("--machine", machine, "a machine of configs/machines, or a file like those (annulet calibrate)")
      ->capture_default_str();
  add_optional(app, "--alpha", alpha, parse_seconds, "TIME", "latency of all links instead of the machine's");
  add_optional(app, "--bandwidth", bandwidth, parse_rate, "RATE", "bandwidth of all links instead of the machine's");
  add_optional(app, "--memory", memory, parse_bytes, "BYTES", "memory of a rank's device, instead of the machine's");
  app.add_option("--ranks-per-node", ranks_per_node, "ranks that share a node, instead of the machine's")
      ->check(at_least(1));
}

cost::Machine MachineOptions::read() const {
  cost::Machine read = cost::read_machine_file(machine);
  for (cost::Link* link : {&read.inside, &read.between}) {
    if (alpha) link->alpha = *alpha;
    if (bandwidth && bandwidth->value() <= 0) {
      throw InputError({"--bandwidth moves nothing", "", "Give a rate above 0, say 12.5GB/s"});
    }
    if (bandwidth) link->beta = cost::SecondsPerByte(1 / bandwidth->value());
  }
  if (memory) read.device.memory = *memory;
  if (ranks_per_node > 0) read.device.ranks_per_node = ranks_per_node;
  return read;
}

void StepOptions::add(CLI::App& app) {
  model.add(app), machine.add(app);
  app.add_option("--type", type, "which of the device's peaks")->capture_default_str();
  add_optional(app, "--peak", peak, parse_flop_rate, "FLOP/s", "peak of a device, instead of the machine's");
  app.add_option("--efficiency", efficiency, "part of the peak that products reach; 0: the machine's")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--gradient-bytes", gradient_bytes, "bytes of a gradient on the wire")
      ->capture_default_str()
      ->check(at_least(1));
  add_unit_option(app, "--bucket", bucket, parse_bytes, "25MiB", "cap of a bucket");
  add_unit_option(app, "--first-bucket", first_bucket, parse_bytes, "1MiB", "cap of the first bucket");
  add_unit_option(app, "--segment", segment, parse_bytes, "4MiB", "most bytes in one message");
}

plan::StepQuestion StepOptions::question(int ranks) const {
  plan::StepQuestion q{model.work(),
                       machine.read(),
                       type,
                       efficiency,
                       ranks,
                       tokens,
                       Bytes(gradient_bytes),
                       {bucket, first_bucket, segment, 4},
                       machine.machine};
  if (peak) q.machine.device.peaks[type] = *peak;
  return q;
}

}  // namespace annulet::cli
