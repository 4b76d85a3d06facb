// annulet plan memory and advise: what fits on a device, and what to take of it.
#include <fmt/format.h>

#include "annulet/base/error.hpp"
#include "annulet/plan/advise.hpp"
#include "plan_topics.hpp"

namespace annulet::cli {
namespace {

struct StateOptions {
  std::string precision = "mixed";
  std::int64_t weight = 0, gradient = 0, optimizer = 0;

  void add(CLI::App& app) {
    app.add_option("--precision", precision,
                   "mixed: 2 + 2 + 12 bytes of weight, gradient and optimiser; float: 4 + 4 + 8, this engine with Adam")
        ->capture_default_str();
    for (const auto& [flag, value, what] : {std::tuple{"--weight-bytes", &weight, "of a weight"},
                                            {"--gradient-bytes", &gradient, "of a gradient"},
                                            {"--optimizer-bytes", &optimizer, "of optimiser state a parameter (K)"}}) {
      if (app.get_option_no_throw(flag) != nullptr) continue;
      app.add_option(flag, *value, fmt::format("{}, instead of the precision's", what))->check(at_least(1));
    }
  }

  plan::StateBytes bytes() const {
    if (precision != "mixed" && precision != "float") {
      throw InputError({fmt::format("--precision {} is unknown", precision), "", "Choose mixed or float"});
    }
    plan::StateBytes bytes = precision == "mixed" ? plan::kMixed : plan::kFloat;
    if (weight > 0) bytes.weight = weight;
    if (gradient > 0) bytes.gradient = gradient;
    if (optimizer > 0) bytes.optimizer = optimizer;
    return bytes;
  }
};

class MemoryTopic final : public PlanTopic {
  void add_options(CLI::App& app) override {
    model_.add(app), machine_.add(app), states_.add(app);
    without(app, {"--attention", "--alpha", "--bandwidth", "--ranks-per-node"});
    app.get_option("--model")->required(false);
    app.add_option("--parameters", parameters_, "instead of a model: only their number")->check(at_least(1));
    app.add_option("--ranks", ranks_, "data-parallel ranks")->capture_default_str()->check(at_least(1));
    app.add_option("--micro-batches", micro_batches_, "accumulated in a step")
        ->capture_default_str()
        ->check(at_least(1));
    app.add_option("--sequences", sequences_, "of a micro-batch on a rank, for activations")
        ->capture_default_str()
        ->check(at_least(1));
    app.add_flag("--dropout", dropout_, "dropout's masks are kept for backward");
    app.add_flag("--keep-scores", keep_scores_, "attention keeps its scores (no FlashAttention)");
    add_unit_option(app, "--bucket", bucket_, parse_bytes, "25MiB", "cap of a bucket");
  }

  plan::Answer answer() const override {
    plan::MemoryQuestion q;
    q.bytes = states_.bytes(), q.ranks = ranks_, q.micro_batches = micro_batches_, q.bucket = bucket_;
    q.device = machine_.read().device.memory, q.recompute = model_.recompute;
    require_one();
    if (parameters_ > 0) {
      q.model = "a model", q.parameters = parameters_;
    } else {
      describe(q);
    }
    return plan::plan_memory(q);
  }

  void require_one() const {
    if (model_.model.empty() != (parameters_ == 0)) return;
    throw InputError(
        {model_.model.empty() ? "there is neither --model nor --parameters" : "--model and --parameters are both given",
         model_.model.empty() ? "nothing says how large the states are" : "each says how large the states are",
         "Give one, say --model llama-7b or --parameters 7500000000"});
  }

  void describe(plan::MemoryQuestion& q) const {
    const plan::Architecture architecture = model_.architecture();
    q.model = architecture.name, q.parameters = plan::parameters(architecture).total();
    q.largest_layer = plan::largest_layer(architecture), q.tied_layer = plan::tied_layer(architecture);
    plan::ActivationOptions options{.sequences = sequences_,
                                    .sequence = model_.sequence,
                                    .element = Bytes(q.bytes.weight),
                                    .dropout = dropout_,
                                    .keeps_scores = keep_scores_};
    q.activations = plan::activations(architecture, options).total();
    options.recomputation = plan::Recomputation::blocks;
    q.recomputed_activations = plan::activations(architecture, options).total();
    q.activations_formula = fmt::format(
        "Korthikanti et al. 2022 for {} sequence(s){}{}; recomputed: blocks' inputs and one block at a time",
        sequences_, dropout_ ? ", dropout's masks" : ", no dropout",
        keep_scores_ ? ", scores kept" : ", no scores kept");
  }

  ModelOptions model_;
  MachineOptions machine_;
  StateOptions states_;
  Elements parameters_ = 0, sequences_ = 1;
  int ranks_ = 8, micro_batches_ = 1;
  bool dropout_ = false, keep_scores_ = false;
  Bytes bucket_{25 << 20};
};

class AdviseTopic final : public PlanTopic {
  void add_options(CLI::App& app) override {
    step_.add(app), states_.add(app);
    without(app, {"--recompute", "--first-bucket", "--segment"});
    bucket_ = app.get_option("--bucket");
    bucket_->default_str("the best of 1, 4, 25, 100 and 400 MiB");
    app.add_option("--ranks", ranks_, "data-parallel ranks")->capture_default_str()->check(at_least(1));
    app.add_option("--tokens", step_.tokens, "of a step, over all ranks; 0: one sequence a rank")->check(at_least(0));
    app.add_option("--top", top_, "candidates to show")->capture_default_str()->check(at_least(1));
  }

  plan::Answer answer() const override {
    plan::AdviceQuestion q{step_.model.architecture(), step_.question(ranks_), states_.bytes(), Bytes(0), {}, top_};
    q.bytes.gradient = step_.gradient_bytes;
    if (step_.model.sequence > 0) q.architecture.context = step_.model.sequence;
    if (q.step.tokens == 0) q.step.tokens = ranks_ * std::max<Elements>(1, q.architecture.context);
    q.memory = q.step.machine.device.memory;
    if (bucket_->count() > 0) q.buckets = {step_.bucket};
    return plan::plan_advise(q);
  }

  StepOptions step_;
  StateOptions states_;
  int ranks_ = 8;
  std::size_t top_ = 12;
  CLI::Option* bucket_ = nullptr;
};

}  // namespace

std::unique_ptr<PlanTopic> memory_topic() { return std::make_unique<MemoryTopic>(); }
std::unique_ptr<PlanTopic> advise_topic() { return std::make_unique<AdviseTopic>(); }

}  // namespace annulet::cli
