// annulet verify: the same steps on all ranks and on one, and whether the same model comes out.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "annulet/base/error.hpp"
#include "annulet/plan/answer.hpp"
#include "annulet/train/inject.hpp"
#include "annulet/train/verify.hpp"
#include "commands.hpp"
#include "config_options.hpp"
#include "on_all_ranks.hpp"
#include "plan_options.hpp"

namespace annulet::cli {
namespace {

constexpr const char* kEvaluateEvery = "--evaluate-every";

struct VerifyOptions {
  train::Config config;
  OutputOptions output;
  int simulated = 0;
  std::optional<double> tolerance;
};

void add_options(CLI::App& app, VerifyOptions& options) {
  add_config_options(app, options.config);
  app.add_option("--simulate", options.simulated, "so many ranks in threads of this process, without mpirun")
      ->check(at_least(1));
  app.add_option("--tolerance", options.tolerance,
                 "largest relative difference of two losses; default: 1e-4 in float, 1e-9 in double; a reproducible "
                 "run: none")
      ->check(not_negative());
  options.output.add(app);
  without(app, {"--explain"});
  app.get_option("--steps")->description("optimiser steps; -1: those of --epochs, or 20 without it");
  app.get_option("--epochs")->description("passes over the training data, where given and steps is -1");
  app.get_option(kEvaluateEvery)->group("");  // a run's own configuration file has it
}

double tolerance(const VerifyOptions& options) {
  if (options.config.reproducible > 0) return 0;
  return options.tolerance.value_or(options.config.type == "double" ? 1e-9 : 1e-4);
}

std::string exact(double value) { return fmt::format("{:.17g}", value); }

plan::Cell exact_cell(double value) { return {value, exact(value)}; }

std::string both(const train::Verification::Parameter& p, int ranks) {
  return fmt::format("{}: {} on {} rank{}, {} alone", p.name, exact(p.on_ranks), ranks, ranks == 1 ? "" : "s",
                     exact(p.alone));
}

plan::Table losses(const train::Verification& v) {
  const std::string on = fmt::format("loss on {} rank{}", v.ranks, v.ranks == 1 ? "" : "s");
  plan::Table table{"losses", "", {{"step", "step"}, {on, "loss"}, {"loss on one", "loss_alone"}}, {}};
  for (std::size_t step = 0; step < v.losses.size(); step += std::max<std::size_t>(1, v.losses.size() - 1)) {
    table.rows.push_back(
        {plan::cell(static_cast<std::int64_t>(step) + 1), exact_cell(v.losses[step]), exact_cell(v.alone[step])});
  }
  return table;
}

std::string of_parameters(const train::Verification& v) {
  if (v.largest_difference.empty()) return fmt::format("all {} parameters are equal", v.parameters);
  const auto& p = v.largest_difference.front();
  return fmt::format("largest difference of {} parameters: {:.3g}, {}", v.parameters, std::abs(p.on_ranks - p.alone),
                     both(p, v.ranks));
}

std::string reason(const train::Config& config) {
  if (config.compress == "none") return "sums are in another order (--reproducible gives the same bits)";
  const bool rounds = config.compress == "bf16";
  return fmt::format("each rank {} (--compress none does not)",
                     rounds ? "rounds its own part of the gradients" : "leaves out some of its own gradients");
}

bool holds(const train::Verification& v, const train::Config& config, double most) {
  return v.loss_difference() <= most && (config.reproducible == 0 || v.identical());
}

std::string verdict(const train::Verification& v, const train::Config& config, double most) {
  if (!std::isfinite(v.loss_difference())) return "a loss is not finite";
  if (v.identical()) return "identical";
  const std::string by = fmt::format("losses differ by {:.2g} at most, relative", v.loss_difference());
  if (config.reproducible == 0) {
    return holds(v, config, most) ? fmt::format("{}; {:g} is allowed: {}", by, most, reason(config))
                                  : fmt::format("{}, more than the {:g} allowed: {}", by, most, reason(config));
  }
  if (v.first_difference.empty()) return "not identical: " + by;
  return "not identical; the first parameter that differs is " + both(v.first_difference.front(), v.ranks);
}

plan::Answer answer(const train::Verification& v, const VerifyOptions& options) {
  const double most = tolerance(options);
  plan::Answer answer{{losses(v)}, {of_parameters(v), verdict(v, options.config, most)}};
  answer.holds = holds(v, options.config, most);
  return answer;
}

void check_simulation(const train::Config& config) {
  if (!config.emulate.empty()) {
    throw InputError({"--emulate with --simulate", "between threads of one process there is no link to slow down",
                      "Use mpirun, or leave out one of the two"});
  }
  if (train::parse_injection(config.inject).kind == train::Injection::Kind::stop) {
    throw InputError({fmt::format("inject = {} with --simulate", config.inject),
                      "it would stop this process, and all ranks with it", "Use mpirun"});
  }
}

void check(VerifyOptions& options, const CLI::App& app, const Arguments& arguments) {
  train::Config& config = options.config;
  if (std::ranges::any_of(arguments, [](const std::string& text) { return text.starts_with(kEvaluateEvery); })) {
    throw InputError({kEvaluateEvery, "verify compares losses of training and evaluates nothing", "Leave it out"});
  }
  if (config.steps == -1 && app.get_option("--epochs")->count() == 0) config.steps = 20;
  if (config.steps == 0) {
    throw InputError({"--steps 0 trains nothing", "there is nothing to compare", "Give 1 or more"});
  }
  if (config.reproducible > 0 && options.tolerance) {
    throw InputError(
        {"--tolerance with --reproducible", "the results are to be the same bits", "Leave out one of the two"});
  }
}

int over_mpi(const VerifyOptions& options) {
  const comm::Environment environment;
  return on_all_ranks("verify", environment, [&] {
    const train::Verification verification = train::verify(options.config, environment);
    const bool speaks = environment.world().rank() == 0;
    const int code = speaks ? options.output.print(answer(verification, options)) : 0;
    return static_cast<int>(environment.world().maximum(code));
  });
}

[[noreturn]] void end_process(int rank, const std::string& why) {
  comm::abort_job(1, fmt::format("annulet verify: rank {}: {}", rank, why));
}

int in_process(const VerifyOptions& options) {
  return on_simulated_ranks("verify", [&] {
    check_simulation(options.config);
    return options.output.print(
        answer(train::verify_in_process(options.config, options.simulated, end_process), options));
  });
}

}  // namespace

int verify(const Arguments& arguments) {
  VerifyOptions options;
  CLI::App app(
      "Trains on all ranks, then the same batches on rank 0 alone, and compares losses and parameters. Where algorithm "
      "or bucket are auto, sums are by the ring, with the default bucket: unlike train, it measures no machine.",
      "annulet verify");
  add_options(app, options);
  std::string help;
  if (parse(app, arguments, help) == Parsed::help) return print_once(help), 0;
  check(options, app, arguments);
  return options.simulated > 0 ? in_process(options) : over_mpi(options);
}

}  // namespace annulet::cli
