// annulet plan step, bucket and scale: what a step takes, by bucket size and by ranks.
#include <fmt/format.h>

#include "annulet/base/error.hpp"
#include "annulet/cost/bucket_cap.hpp"
#include "annulet/plan/scale.hpp"
#include "annulet/report/profile_file.hpp"
#include "annulet/train/profile.hpp"
#include "plan_topics.hpp"

namespace annulet::cli {
namespace {

// A step of a model on a machine, or of a profile that a run of this engine recorded.
class StepSource {
 public:
  void add(CLI::App& app) {
    app_ = &app;
    options_.add(app);
    app.get_option("--model")->required(false);
    without(app, {"--memory"});
    app.get_option("--bucket")->default_str("25MiB, with --profile what the run takes");
    app.add_option("--ranks", ranks_, "data-parallel ranks")->capture_default_str()->check(at_least(1));
    app.add_option("--zero", engine_.zero, "stage of ZeRO, 0 to 3")
        ->capture_default_str()
        ->check(CLI::Range(0, schedule::kZeroStages - 1));
    app.add_option("--compress", engine_.compress, "gradients on the wire: none, bf16 or topk:16")
        ->capture_default_str();
    app.add_option("--tokens", options_.tokens, "of a step, over all ranks; 0: one sequence a rank")
        ->check(at_least(0));
    auto* run = app.add_option_group("A recorded run", "instead of --model; all options as the run's");
    run->add_option("--profile", profile_, "profile.json of annulet train --record-profile");
    run->add_option("--driver", driver_, "blocking, polling or thread")->capture_default_str();
    run->add_flag("--spare-core", spare_core_, "a progress thread has a core of its own");
    run->add_option("--slots", engine_.slots, "received segments that may wait to be added; 0: by the link")
        ->check(at_least(0));
    run->add_option("--emulate", engine_.emulate,
                    "as the run has it: the length of a segment; the link itself is --machine's");
  }

  plan::Answer step() const {
    require_one();
    train::validate_compression(engine_);
    return recorded() ? plan::plan_profiled_step(profiled(), what()) : plan::plan_step(question());
  }

  plan::Answer buckets() const {
    require_one();
    train::validate_compression(engine_);
    if (engine_.zero == 3) {
      throw InputError({"--zero 3 has no buckets to choose", "a bucket is a layer there", "Ask plan step"});
    }
    return plan::plan_bucket(recorded() ? profiled() : plan::step_input(question(), cost::Driver::thread), what());
  }

 private:
  bool recorded() const { return !profile_.empty(); }

  bool given(const char* flag) const {
    const CLI::Option* option = app_->get_option_no_throw(flag);
    return option != nullptr && option->count() > 0;
  }

  // What would be ignored is refused.
  void require_one() const {
    if (!recorded() && options_.model.model.empty()) {
      throw InputError({"there is neither --model nor --profile", "nothing says what is computed",
                        "Give --model with a name of configs/models, or --profile with what annulet train recorded"});
    }
    const std::vector<const char*> of_model{"--model",      "--sequence",       "--recompute", "--attention", "--type",
                                            "--efficiency", "--gradient-bytes", "--tokens",    "--peak"};
    const std::vector<const char*> of_run{"--driver", "--spare-core", "--slots", "--emulate"};
    for (const char* flag : recorded() ? of_model : of_run) {
      if (!given(flag)) continue;
      throw InputError({fmt::format("{} does not go with {}", flag, recorded() ? "--profile" : "--model"),
                        recorded() ? "a profile says what is computed" : "it is of a recorded run",
                        fmt::format("Leave out {}", recorded() ? "one of the two" : flag)});
    }
  }

  plan::StepQuestion question() const {
    plan::StepQuestion question = options_.question(ranks_);
    question.stage = engine_.zero, question.sync.compression = schedule::parse_compression(engine_.compress);
    if (question.tokens == 0) question.tokens = ranks_ * sequence();
    return question;
  }

  Elements sequence() const {
    const plan::Architecture architecture = options_.model.architecture();
    return options_.model.sequence > 0 ? options_.model.sequence : std::max<Elements>(1, architecture.context);
  }

  std::string what() const {
    const bool plain = engine_.zero == 0 && engine_.compress == "none";
    const std::string how = plain ? "" : fmt::format(", ZeRO stage {}, compression {}", engine_.zero, engine_.compress);
    if (recorded()) {
      return fmt::format("{} on {} ranks, {}{}, {}", profile_, ranks_, driver_, how, options_.machine.machine);
    }
    const plan::StepQuestion q = question();
    return fmt::format("{} on {} ranks ({} a step), {}", q.work.model, ranks_, plan::cell(q.tokens).shown,
                       q.machine.source);
  }

  // As annulet train --predict-from has it.
  cost::StepInput profiled() const {
    const train::Profile profile = report::read_profile(profile_);
    train::Config config = engine_;
    config.type = profile.workload.type;
    train::validate_compression(config);
    if (given("--bucket")) config.bucket = options_.bucket;
    if (given("--segment")) config.segment = options_.segment;
    config.first_bucket = options_.first_bucket;
    cost::StepInput input = train::profiled_step(
        config, profile, Bytes(profile.workload.type == "double" ? sizeof(double) : sizeof(float)));
    const cost::Machine machine = options_.machine.read();
    input.network = engine_.emulate.empty() ? plan::network_of(machine, ranks_) : machine.network({});
    input.world = ranks_;
    input.driver = driver_of(), input.spare_core = spare_core_;
    if (!config.bucket && ranks_ > 1 && config.zero < 3) {
      input.sync.bucket = cost::cheapest_bucket_cap(input).cap;
      input.sync.first_bucket = std::min(input.sync.first_bucket, input.sync.bucket);
    }
    return input;
  }

  cost::Driver driver_of() const {
    if (driver_ == "blocking") return cost::Driver::blocking;
    if (driver_ == "polling") return cost::Driver::polling;
    if (driver_ == "thread") return cost::Driver::thread;
    throw InputError(
        {fmt::format("--driver: '{}' is not a driver", driver_), "", "Choose blocking, polling or thread"});
  }

  const CLI::App* app_ = nullptr;
  StepOptions options_;
  int ranks_ = 8;
  std::string profile_, driver_ = "polling";
  bool spare_core_ = false;
  train::Config engine_;  // slots and emulated link, as the run has them
};

class StepTopic final : public PlanTopic {
  void add_options(CLI::App& app) override { source_.add(app); }
  plan::Answer answer() const override { return source_.step(); }

  StepSource source_;
};

class BucketTopic final : public PlanTopic {
  void add_options(CLI::App& app) override {
    source_.add(app);
    without(app, {"--bucket"});
  }
  plan::Answer answer() const override { return source_.buckets(); }

  StepSource source_;
};

class ScaleTopic final : public PlanTopic {
  void add_options(CLI::App& app) override {
    options_.add(app);
    without(app, {"--memory", "--segment"});  // a chunk is a message
    app.add_option("--ranks", ranks_, "numbers of ranks")->delimiter(',')->default_str("1,2,4,...,16384");
    app.add_option("--tokens", options_.tokens,
                   "of a rank in a step (with --strong: of a step, over all ranks); 0: one sequence a rank")
        ->check(at_least(0));
    app.add_flag("--strong", strong_, "the tokens of a step stay, whatever the ranks");
    app.add_option("--jitter", jitter_, "stragglers: a rank computes exp(JITTER |z|) times as long, z normal")
        ->capture_default_str();
    app.add_option("--seed", seed_, "of the stragglers")->capture_default_str();
    app.add_option("--critical-batch", critical_batch_, "in tokens: steps are in proportion to 1 + C/B")
        ->check(at_least(1));
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
