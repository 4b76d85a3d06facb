// annulet plan step, bucket and scale: what a step takes, by bucket size and by ranks.
#include <fmt/format.h>

#include "annulet/base/error.hpp"
#include "annulet/plan/scale.hpp"
#include "annulet/report/profile_file.hpp"
#include "annulet/train/config.hpp"
#include "plan_topics.hpp"

namespace annulet::cli {
namespace {

// A step of a model on a machine, or of a profile that a run of this engine recorded.
struct StepSource {
  StepOptions options;
  int ranks = 8;
  std::string profile, driver = "polling";
  bool spare_core = false;
  train::Config engine;  // bucket, segment, slots and emulated link, as the run has them

  void add(CLI::App& app) {
    options.add(app);
    app.get_option("--model")->required(false);
    app.add_option("--ranks", ranks, "data-parallel ranks")->capture_default_str()->check(CLI::PositiveNumber);
    app.add_option("--tokens", options.tokens, "of a step, over all ranks; 0: one sequence a rank")
        ->check(CLI::NonNegativeNumber);
    auto* run = app.add_option_group("A recorded run", "instead of --model");
    run->add_option("--profile", profile, "profile.json of annulet train --record-profile");
    run->add_option("--driver", driver, "blocking, polling or thread")->capture_default_str();
    run->add_flag("--spare-core", spare_core, "a progress thread has a core of its own");
    run->add_option("--emulate", engine.emulate, "the run's; it decides the length of a segment");
  }

  plan::StepQuestion question() const {
    if (options.model.model.empty()) {
      throw InputError({"there is neither --model nor --profile", "nothing says what is computed",
                        "Name a model of configs/models, or a profile that annulet train recorded"});
    }
    plan::StepQuestion question = options.question(ranks);
    if (question.tokens == 0) question.tokens = ranks * sequence();
    return question;
  }

  Elements sequence() const {
    const plan::Architecture architecture = options.model.architecture();
    return options.model.sequence > 0 ? options.model.sequence : std::max<Elements>(1, architecture.context);
  }

  cost::StepInput input() const { return profile.empty() ? modelled() : profiled(); }

  std::string what() const {
    if (!profile.empty()) return fmt::format("{} on {} ranks, {}, {}", profile, ranks, driver, options.machine.machine);
    const plan::StepQuestion q = question();
    return fmt::format("{} on {} ranks ({} tokens a step), {}", q.work.model, ranks, q.tokens, q.machine.source);
  }

 private:
  cost::StepInput modelled() const { return plan::step_input(question(), cost::Driver::thread); }

  cost::StepInput profiled() const {
    const train::Profile read = report::read_profile(profile);
    train::Config config = engine;
    config.bucket = options.bucket, config.first_bucket = options.first_bucket, config.slots = 0;
    cost::StepInput input;
    input.profile = read.step, input.tensors = read.workload.sizes;
    input.element = Bytes(read.workload.type == "double" ? 8 : 4);
    input.sync = train::sync_options(config);
    const cost::Machine machine = options.machine.read();
    input.network = plan::network_of(machine, ranks), input.world = ranks;
    input.driver = driver_of(), input.spare_core = spare_core;
    return input;
  }

  cost::Driver driver_of() const {
    if (driver == "blocking") return cost::Driver::blocking;
    if (driver == "polling") return cost::Driver::polling;
    if (driver == "thread") return cost::Driver::thread;
    throw InputError({fmt::format("'{}' is not a driver", driver), "", "Choose blocking, polling or thread"});
  }
};

class StepTopic final : public PlanTopic {
  void add_options(CLI::App& app) override { source_.add(app); }
  plan::Answer answer() const override {
    if (source_.profile.empty()) return plan::plan_step(source_.question());
    return plan::plan_profiled_step(source_.input(), source_.what());
  }

  StepSource source_;
};

class BucketTopic final : public PlanTopic {
  void add_options(CLI::App& app) override { source_.add(app); }
  plan::Answer answer() const override { return plan::plan_bucket(source_.input(), source_.what()); }

  StepSource source_;
};

class ScaleTopic final : public PlanTopic {
  void add_options(CLI::App& app) override {
    options_.add(app);
    app.add_option("--ranks", ranks_, "numbers of ranks")->delimiter(',')->default_str("1,2,4,...,16384");
    app.add_option("--tokens", options_.tokens,
                   "of a rank in a step (with --strong: of a step, over all ranks); 0: one sequence a rank");
    app.add_flag("--strong", strong_, "the tokens of a step stay, whatever the ranks");
    app.add_option("--jitter", jitter_, "stragglers: a rank computes exp(JITTER |z|) times as long, z normal")
        ->capture_default_str();
    app.add_option("--seed", seed_, "of the stragglers")->capture_default_str();
    app.add_option("--critical-batch", critical_batch_, "in tokens: steps are in proportion to 1 + C/B");
    bucket_ = app.get_option("--bucket");
    bucket_->default_str("the cheapest for each number of ranks");
  }

  plan::Answer answer() const override {
    plan::ScaleQuestion q{options_.question(1), ranks_, strong_, bucket_->count() == 0, jitter_, seed_, {}};
    if (q.ranks.empty()) {
      for (int ranks = 1; ranks <= 16384; ranks *= 2) q.ranks.push_back(ranks);
    }
    const Elements context = options_.model.architecture().context;
    if (q.step.tokens == 0) {
      const Elements sequence = std::max<Elements>(1, options_.model.sequence > 0 ? options_.model.sequence : context);
      q.step.tokens = strong_ ? sequence * q.ranks.back() : sequence;
    }
    if (critical_batch_ != 0) q.critical_batch = critical_batch_;
    return plan::plan_scale(q);
  }

  StepOptions options_;
  std::vector<int> ranks_;
  bool strong_ = false;
  double jitter_ = 0;
  std::uint64_t seed_ = 1;
  Elements critical_batch_ = 0;
  CLI::Option* bucket_ = nullptr;
};

}  // namespace

std::unique_ptr<PlanTopic> step_topic() { return std::make_unique<StepTopic>(); }
std::unique_ptr<PlanTopic> bucket_topic() { return std::make_unique<BucketTopic>(); }
std::unique_ptr<PlanTopic> scale_topic() { return std::make_unique<ScaleTopic>(); }

}  // namespace annulet::cli
