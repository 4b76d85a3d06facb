// annulet verify: the same steps on all ranks and on one, and whether the same model comes out.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "annulet/base/error.hpp"
#include "annulet/plan/answer.hpp"
#include "annulet/train/verify.hpp"
#include "commands.hpp"
#include "config_options.hpp"
#include "on_all_ranks.hpp"
#include "plan_options.hpp"

namespace annulet::cli {
namespace {

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
      ->check(CLI::NonNegativeNumber);
  options.output.add(app);
  without(app, {"--explain"});
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

std::string verdict(const train::Verification& v, const train::Config& config, double most) {
  if (v.identical()) return "identical";
  const std::string by = fmt::format("losses differ by {:.2g} at most, relative", v.loss_difference());
  if (config.reproducible == 0) {
    return fmt::format("{}; {:.0e} is allowed, sums being in another order (--reproducible gives the same bits)", by,
                       most);
  }
  if (v.first_difference.empty()) return "not identical: " + by;
  return "not identical; the first parameter that differs is " + both(v.first_difference.front(), v.ranks);
}

plan::Answer answer(const train::Verification& v, const VerifyOptions& options) {
  const double most = tolerance(options);
  plan::Answer answer{{losses(v)}, {of_parameters(v), verdict(v, options.config, most)}};
  answer.holds = options.config.reproducible > 0 ? v.identical() : !(v.loss_difference() > most);
  if (!std::isfinite(v.losses.back())) answer.holds = false;
  return answer;
}

void check(VerifyOptions& options) {
  if (options.config.steps < 0) options.config.steps = 20;
  if (options.config.steps == 0) {
    throw InputError({"--steps 0 trains nothing", "there is nothing to compare", "Give 1 or more"});
  }
  if (options.config.reproducible > 0 && options.tolerance) {
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

}  // namespace

int verify(const Arguments& arguments) {
  VerifyOptions options;
  CLI::App app("Trains on all ranks, then the same batches on rank 0 alone, and compares losses and parameters.",
               "annulet verify");
  add_options(app, options);
  std::string help;
  if (parse(app, arguments, help) == Parsed::help) return print_once(help), 0;
  check(options);
  if (options.simulated == 0) return over_mpi(options);
  return options.output.print(answer(train::verify_in_process(options.config, options.simulated), options));
}

}  // namespace annulet::cli
