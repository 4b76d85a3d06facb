// annulet train: trains a model on all ranks of the MPI world, or alone without mpirun.
#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <optional>

#include "annulet/base/error.hpp"
#include "annulet/base/random.hpp"
#include "annulet/comm/environment.hpp"
#include "annulet/report/console.hpp"
#include "annulet/report/profile_file.hpp"
#include "annulet/report/run_folder.hpp"
#include "annulet/report/trace.hpp"
#include "annulet/train/agree.hpp"
#include "annulet/train/session.hpp"
#include "commands.hpp"
#include "config_options.hpp"
#include "on_all_ranks.hpp"

namespace annulet::cli {
namespace {

struct TrainOptions {
  train::Config config;
  std::string out;
  bool overwrite = false;
  int expected_ranks = 0;
  std::string machine;
  std::string predict_from;
  bool record_profile = false;
  std::optional<long> show_step;
  std::string trace;
};

// Everything that a run reports to.
class Observers final : public train::Observer {
 public:
  void add(std::unique_ptr<train::Observer> observer) { observers_.push_back(std::move(observer)); }

  void begin(const train::RunInfo& info) override {
    for (auto& o : observers_) o->begin(info);
  }
  void step(const train::StepRecord& record) override {
    for (auto& o : observers_) o->step(record);
  }
  void evaluated(long step, const train::Evaluation& evaluation) override {
    for (auto& o : observers_) o->evaluated(step, evaluation);
  }
  void end(const train::Summary& summary, const std::vector<train::BucketRecord>& buckets,
           const std::vector<train::StepRecord>& steps) override {
    for (auto& o : observers_) o->end(summary, buckets, steps);
  }

 private:
  std::vector<std::unique_ptr<train::Observer>> observers_;
};

void add_options(CLI::App& app, TrainOptions& options) {
  add_config_options(app, options.config);
  app.add_option("--out", options.out, "folder for the results; without it nothing is kept")->group("Files");
  app.add_flag("--overwrite", options.overwrite, "replace an older run in that folder")->group("Files");
  app.add_option("--machine", options.machine, "a machine file to predict with (default: a quick calibration)")
      ->group("Files");
  app.add_flag("--record-profile", options.record_profile, "one rank: write what computing costs to OUT/profile.json")
      ->group("Files");
  app.add_option("--predict-from", options.predict_from,
                 "a profile.json: predict a step before the first one and compare at the end")
      ->group("Files");
  app.add_option("--show-step", options.show_step, "draw this step, counted from 0, beside its prediction at the end")
      ->group("Run");
  app.add_option("--trace", options.trace, "a file for Perfetto or chrome://tracing: what all ranks did in each step")
      ->group("Files");
  app.add_option("--expect-ranks", options.expected_ranks, "refuse to run on another number of ranks")
      ->check(at_least(1))
      ->group("Run");
}

std::string content(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// What else than the configuration decides what ranks do together.
std::uint64_t fingerprint(const TrainOptions& options, const train::SessionOptions& session) {
  const std::string text =
      fmt::format("{} {} {} ", session.record_profile, session.show_step.value_or(-1), session.tracer != nullptr);
  return stable_hash(text + content(options.machine) + '|' + content(options.predict_from));
}

void run(const TrainOptions& options, const comm::Environment& environment) {
  const comm::Communicator& world = environment.world();
  world.set_deadline(options.config.deadline);
  Observers observers;
  train::SessionOptions session;
  std::optional<report::Trace> trace;
  train::agree_on(world, [&] {
    train::validate(options.config);
    if (!options.machine.empty()) session.machine = cost::read_machine_file(options.machine);
    if (!options.predict_from.empty()) session.profile = report::read_profile(options.predict_from);
    session.record_profile = options.record_profile, session.show_step = options.show_step;
    if (options.record_profile && options.out.empty()) {
      throw InputError({"--record-profile has no folder to write to", "", "Name one with --out"});
    }
    if (world.rank() == 0 && !options.out.empty()) {
      auto folder = std::make_unique<report::RunFolder>(
          options.out, options.overwrite ? report::Existing::replace : report::Existing::refuse);
      session.weights = folder->weights();
      observers.add(std::move(folder));
    }
    if (world.rank() == 0) observers.add(std::make_unique<report::Console>(report::detect_liveliness()));
    if (!options.trace.empty()) trace.emplace(options.trace, world.rank()), session.tracer = &*trace;
  });
  train::require_equal(world, fingerprint(options, session),
                       {"the options or files are not the same on all ranks", "every rank must run the same steps",
                        "Give all ranks the same files and arguments"});
  train::run_session(options.config, environment, session, observers);
  if (world.rank() == 0 && !options.out.empty()) fmt::print("results in {}\n", options.out);
}

}  // namespace

int train(const Arguments& arguments) {
  TrainOptions options;
  CLI::App app("Trains a model data-parallel on all ranks of the MPI world (alone without mpirun).", "annulet train");
  add_options(app, options);
  std::string help;
  if (parse(app, arguments, help) == Parsed::help) {
    print_once(help);
    return 0;
  }
  const auto expected = options.expected_ranks > 0 ? std::optional(options.expected_ranks) : std::nullopt;
  const comm::Environment environment(expected);
  return on_all_ranks("train", environment, [&] {
    run(options, environment);
    return 0;
  });
}

}  // namespace annulet::cli
