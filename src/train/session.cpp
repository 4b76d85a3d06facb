#include "annulet/train/session.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "annulet/base/random.hpp"
#include "annulet/base/statistics.hpp"
#include "annulet/measure/process.hpp"
#include "annulet/nn/arithmetic.hpp"
#include "annulet/schedule/zero.hpp"
#include "annulet/train/agree.hpp"
#include "annulet/train/data.hpp"
#include "annulet/train/step_samples.hpp"
#include "annulet/train/trainer.hpp"
#include "annulet/train/weights.hpp"
#include "machine.hpp"
#include "predict.hpp"

namespace annulet::train {
namespace {

template <class T>
std::uint64_t hash_of(std::span<const T> values, std::uint64_t before) {
  return stable_hash({reinterpret_cast<const char*>(values.data()), values.size_bytes()}, before);
}

template <class Value>
std::vector<Value> without_first(std::vector<Value> values, std::size_t skip = 5) {
  if (values.size() > skip) values.erase(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(skip));
  return values;
}

// The records of a run, every one of a short run, evenly spaced ones of a long run: enough for medians, never more than
// kMost. When it is full, every other one goes.
class RecordKeeper {
 public:
  explicit RecordKeeper(long steps) { kept_.reserve(static_cast<std::size_t>(std::min(steps, kMost))); }

  void add(const StepRecord& record) {
    if (record.step % stride_ != 0) return;
    if (kept_.size() == static_cast<std::size_t>(kMost)) thin_out();
    if (record.step % stride_ == 0) kept_.push_back(record);
  }

  const std::vector<StepRecord>& kept() const { return kept_; }

 private:
  static constexpr long kMost = 1 << 16;

  void thin_out() {
    stride_ *= 2;
    std::erase_if(kept_, [this](const StepRecord& record) { return record.step % stride_ != 0; });
  }

  std::vector<StepRecord> kept_;
  long stride_ = 1;
};

template <class T>
class Session {
 public:
  Session(const Config& config, const comm::Environment& environment, const SessionOptions& options, Observer& observer)
      : config_(config),
        environment_(environment),
        world_(environment.world()),
        options_(options),
        observer_(observer) {}

  Summary run() {
    prepare();
    announce();
    train();
    return conclude();
  }

 private:
  bool speaks() const { return world_.rank() == 0; }

  // Everything that can be refused is refused here, on all ranks together.
  void prepare() {
    agree_on(world_, [&] { require_lone_profile(); });
    require_possible_reproducibility();
    agree_on(world_, [&] { data_ = load_data(config_); });
    require_equal(world_, data_.train->fingerprint() ^ (data_.test ? data_.test->fingerprint() : 0),
                  {"the data are not the same on all ranks", "every rank takes its slice of one data set",
                   "Give all ranks the same files"});
    steps_ = total_steps(config_, *data_.train);
    agree_on(world_, [&] { require_shown_step(); });
    machine_ = look_at_machine(environment_, config_, sync_options(config_).bucket, options_.machine);
    decide();
    if (!config_.bucket) config_.bucket = sync_options(config_).bucket;  // nothing is sent, or no better one is known
    if (options_.profile) know_the_price_of_moving();
    engine_ = std::make_unique<collectives::Engine>(
        transport_factory(world_, config_)(), collectives::EngineOptions{machine_.driver.driver, config_.deadline});
    agree_on(world_, [&] {
      trainer_ = std::make_unique<Trainer<T>>(config_, *engine_, *data_.train, data_.test.get());
      if (!config_.init.empty()) load_initial_weights();
    });
    collectives::require_same_operations(world_, *engine_);
    look_at_weights();
    require_equal_replicas("before the first step");
    samples_.emplace(steps_, trainer_->sync().buckets().size(), options_.show_step);
    records_.emplace(steps_);
    agree_on(world_, [&] { predict(); });
    if (options_.record_profile) begin_profile();
    if (options_.tracer != nullptr) begin_trace();
  }

  void load_initial_weights() {
    load_weights<T>(config_.init, trainer_->layout(), [&](const nn::Tensor& tensor, std::span<const T> values) {
      trainer_->assign_weights({tensor.first, tensor.count}, values);
    });
  }

  // What is to be known of all weights; whole_ on rank 0 if they are to be written. Collective.
  void look_at_weights() {
    hash_ = stable_hash(""), weights_finite_ = true;
    trainer_->visit_weights([&](schedule::Interval elements, std::span<const T> values) {
      hash_ = hash_of(values, hash_);
      weights_finite_ = weights_finite_ && parallel::all_finite<T>(values);
      keep_for_writing(elements, values);
    });
  }

  // Where every rank has all weights they are used where they lie, else they are brought together.
  void keep_for_writing(schedule::Interval elements, std::span<const T> values) {
    if (!speaks() || options_.weights.empty()) return;
    const Elements size = trainer_->layout().size();
    if (elements.count == size) {
      whole_ = values;
      return;
    }
    together_.resize(static_cast<std::size_t>(size));
    std::ranges::copy(values, together_.begin() + elements.first);
    whole_ = together_;
  }

  void require_possible_reproducibility() const {
    if (config_.reproducible == 0) return;
    agree_on(world_, [&] { require_enough_micro_shards(config_.reproducible, world_.size(), config_.accumulate); });
    require_equal(world_, stable_hash(nn::arithmetic()),
                  {"the instruction sets or the BLAS are not the same on all ranks",
                   "the bits of a result depend on them", "Use one build on processors of one type"});
  }

  void require_lone_profile() const {
    if (!options_.record_profile || world_.size() == 1) return;
    throw InputError({fmt::format("a profile is recorded on one rank, there are {}", world_.size()),
                      "it is of computing, and ranks wait for each other", "Run without mpirun"});
  }

  void require_shown_step() const {
    if (!options_.show_step || (*options_.show_step >= 0 && *options_.show_step < steps_)) return;
    throw InputError({fmt::format("--show-step {} is no step of this run", *options_.show_step),
                      steps_ > 0 ? fmt::format("they are numbered 0 to {}", steps_ - 1) : "it makes none", ""});
  }

  Workload this_workload() const {
    return workload(config_, trainer_->model().describe(), trainer_->layout(),
                    batch_per_rank(samples_of_a_step(), world_.size()));
  }

  // What `auto` stands for, decided by prediction: the bucket cap, then the algorithm of every bucket.
  void decide() {
    const bool open = preferred_executions(config_).has_value();
    if (world_.size() == 1 || (config_.bucket && !open)) return;
    const BucketCapInput input = decision_input();
    if (options_.profile && options_.profile->workload.sizes != input.tensors) return;  // refused in predict()
    if (!config_.bucket) {
      bucket_cap_ = choose_bucket_cap(world_, input);
      config_.bucket = bucket_cap_->cap;
      config_.first_bucket = std::min(config_.first_bucket, bucket_cap_->cap);
    }
    if (!open || input.tensors.empty()) return;
    algorithms_ = choose_algorithms(world_, input);
    config_.algorithm = algorithms_->option;
  }

  BucketCapInput decision_input() {
    std::vector<Elements> tensors;
    std::unique_ptr<nn::Model<T>> model;  // a small one, for its layout
    agree_on(world_, [&] { model = make_model<T>(config_, data_.train->shape().classes, 1); });
    for (const nn::Tensor& tensor : model->layout().tensors()) tensors.push_back(tensor.count);
    const Flops flops = model->flops(batch_per_rank(samples_of_a_step(), world_.size()));
    return {config_, machine_, options_.machine, options_.profile, std::move(tensors), Bytes(sizeof(T)), flops};
  }

  // For the prediction only, where the machine file does not tell.
  void know_the_price_of_moving() {
    cost::Link &inside = machine_.network.inside, &between = machine_.network.between;
    if (world_.size() == 1 || (inside.moving.value() > 0 && between.moving.value() > 0)) return;
    inside.moving = between.moving = moving_pace(world_, config_);
  }

  void predict() {
    if (!options_.profile) return;
    if (config_.zero > 0) {
      throw InputError({fmt::format("a step of ZeRO stage {} cannot be predicted from a profile", config_.zero),
                        "the prediction is of all-reduces", "Leave out --predict-from, or choose --zero 0"});
    }
    if (config_.reproducible > 0) {
      throw InputError({"a reproducible step cannot be predicted from a profile",
                        "a rank makes as many passes as it has pieces of the tree, which the profile does not know",
                        "Leave out --predict-from, or --reproducible"});
    }
    require_fitting(*options_.profile, this_workload());
    prediction_ = cost::predict_step(step_input(config_, machine_, *options_.profile, Bytes(sizeof(T)), world_.size()));
  }

  void begin_profile() {
    profile_.emplace(trainer_->layout().tensors().size(), Bytes(sizeof(T)) * trainer_->layout().size(),
                     samples_->count(steps_));
    trainer_->record(profile_->instants());
  }

  void begin_trace() {
    Instant origin = Clock::now();
    world_.broadcast(std::as_writable_bytes(std::span(&origin, 1)), 0);
    options_.tracer->begin(world_.rank(), world_.size(), {origin, machine_.clock.ahead});
  }

  void trace(const StepRecord& record) {
    traced_.began = trainer_->step_began(), traced_.backward_ended = trainer_->backward_ended();
    traced_.record = record;
    traced_.buckets.clear();
    for (std::size_t b = 0; b < trainer_->sync().buckets().size() && world_.size() > 1; ++b) {
      traced_.buckets.push_back(trainer_->sync().times(b));
    }
    options_.tracer->step(traced_);
  }

  // Rank 0 keeps what all ranks wrote.
  void merge_traces() {
    if (options_.tracer == nullptr) return;
    agree_on(world_, [&] { events_ = options_.tracer->events(); });
    std::vector<std::string> all;
    for (const auto& bytes : world_.gather(std::as_bytes(std::span(events_)), 0)) {
      all.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    agree_on(world_, [&] {
      if (speaks()) options_.tracer->keep(all);
    });
    if (!speaks()) options_.tracer->discard();
  }

  void announce() {
    if (!speaks()) return;
    RunInfo info;
    info.model = trainer_->model().describe();
    info.parameters = trainer_->layout().size();
    info.ranks = world_.size(), info.placement = environment_.placement();
    info.driver = collectives::to_text(machine_.driver.driver), info.driver_reason = machine_.driver.reason;
    info.algorithm = algorithm();
    for (const auto& bucket : trainer_->sync().buckets())
      info.buckets.push_back(Bytes(sizeof(T)) * bucket.elements.count);
    info.network = machine_.network, info.calibration_residual = machine_.calibration_residual;
    info.prediction = prediction_, info.bucket_cap = bucket_cap_;
    info.steps = steps_;
    if (config_.reproducible > 0) {
      info.sums = fmt::format("in one fixed tree over {} micro-shards, for 1 to {} ranks; {}", config_.reproducible,
                              config_.reproducible, nn::arithmetic());
    }
    info.train_samples = data_.train->samples(), info.test_samples = data_.test ? data_.test->samples() : 0;
    if (data_.train->shape().tokens > 0) info.sample = "window";
    info.mpi = environment_.library(), info.thread_level = comm::to_text(environment_.thread_level());
    info.warnings = machine_.warnings;
    info.config_toml = to_toml(resolved());
    observer_.begin(info);
  }

  void train() {
    for (long step = 0; step < steps_; ++step) {
      const StepRecord record = make_step(step);
      if (samples_->wants(step)) {
        samples_->add(step, trainer_->sync(), trainer_->step_began(), trainer_->backward_ended());
        if (profile_) {
          profile_->add(record, {trainer_->step_began(), trainer_->backward_began(), trainer_->backward_ended()});
        }
      }
      records_->add(record);
      if (step == options_.show_step) shown_ = ShownStep{record, {}, prediction_};
      if (options_.tracer != nullptr) trace(record);
      last_loss_ = record.loss;
      if (speaks()) observer_.step(record);
      if (evaluation_is_due(step)) evaluate(step);
    }
    if (steps_ == 0 && data_.test) evaluate(0);
  }

  // What goes wrong on one rank says in which step.
  StepRecord make_step(long step) {
    try {
      return trainer_->step();
    } catch (const AgreedError&) {
      throw;
    } catch (const std::exception& error) {
      throw std::runtime_error(fmt::format("step {}: {}", step, error.what()));
    }
  }

  bool evaluation_is_due(long step) const {
    if (!data_.test) return false;
    const long every = config_.evaluate_every > 0 ? config_.evaluate_every : trainer_->steps_per_epoch();
    return step + 1 == steps_ || (step + 1) % every == 0;
  }

  void evaluate(long step) {
    evaluation_ = trainer_->evaluate();
    if (speaks()) observer_.evaluated(step, *evaluation_);
  }

  // The engine ends before the communicator is used again.
  Summary conclude() {
    sent_ = trainer_->settle();
    look_at_weights();
    std::optional<ReproducibleCost> cost;
    if (config_.reproducible > 0) cost = trainer_->reproducible_cost();
    std::vector<schedule::Bucket> buckets(trainer_->sync().buckets().begin(), trainer_->sync().buckets().end());
    engine_.reset();
    merge_traces();
    require_equal_replicas("after the last step");
    require_finite_weights();
    agree_on(world_, [&] {
      if (speaks() && !options_.weights.empty())
        save_weights<T>(options_.weights, trainer_->layout(), whole_, data_.vocabulary);
    });
    Summary summary = describe_run();
    add_traffic(summary, buckets);
    if (cost) add_reproducible_cost(summary, *cost, buckets);
    add_times(summary);
    const auto report = samples_->gather(
        world_, {buckets, Bytes(sizeof(T)), sync_options(config_), schedule::gradient_collective(config_.zero),
                 machine_.network, clock_drift(world_, machine_.clock, config_), options_.show_step});
    add_communication(summary, report.steps);
    add_shown(summary, report.buckets);
    summary.peak_rss = Bytes(static_cast<std::int64_t>(world_.maximum(measure::peak_resident().as_double())));
    if (speaks()) observer_.end(summary, report.buckets, records_->kept());
    return summary;
  }

  void require_equal_replicas(std::string_view when) {
    require_equal(
        world_, hash_,
        {fmt::format("the weights are not the same on all ranks {}", when),
         "the replicas must stay equal to the last bit", "Look for ranks with other hardware or another build"});
  }

  Elements samples_of_a_step() const {
    return data_.train->random() ? config_.batch : std::min(config_.batch, data_.train->samples());
  }

  Config resolved() const {
    Config config = config_;
    if (config.model == "gpt" && config.vocabulary == 0) config.vocabulary = data_.train->shape().classes;
    config.steps = steps_;
    config.driver = collectives::to_text(machine_.driver.driver);
    config.segment = sync_options(config_).segment, config.slots = sync_options(config_).slots;
    return config;
  }

  void require_finite_weights() {
    if (weights_finite_) return;
    throw AgreedError(
        describe({"the weights are not finite after the last step", "they are the same on all ranks and of no use",
                  "Lower optimizer.lr, or set optimizer.clip"}));
  }

  std::string algorithm() const {
    if (config_.reproducible > 0) {
      return fmt::format("everyone to the owner of a chunk, in the order of the tree{}, segments of {}",
                         config_.zero > 0 ? fmt::format(" (ZeRO {})", config_.zero) : "",
                         to_text(sync_options(config_).segment));
    }
    if (config_.zero > 0) {
      return fmt::format("ring, reduce-scatter and all-gather (ZeRO {}), segments of {}", config_.zero,
                         to_text(sync_options(config_).segment));
    }
    const parallel::SyncOptions sync = sync_options(config_);
    if (!algorithms_) return to_text(schedule::bucket_execution(sync.bucket, sync));
    std::string text;
    for (const schedule::ExecutionRange& range : sync.executions) {
      const bool one = range.first == range.last;
      text +=
          fmt::format("{}{} for {}{}", text.empty() ? "" : "; ", to_text(schedule::bucket_execution(range.first, sync)),
                      to_text(range.first), one ? "" : " to " + to_text(range.last));
    }
    return fmt::format("{} (auto: by predicted cost on {})", text, algorithms_->basis);
  }

  Summary describe_run() const {
    Summary summary;
    summary.seed = config_.seed, summary.ranks = world_.size(), summary.zero = config_.zero;
    summary.reproducible = config_.reproducible;
    summary.driver = collectives::to_text(machine_.driver.driver), summary.algorithm = algorithm();
    summary.parameters = trainer_->layout().size(), summary.steps = steps_, summary.global_batch = config_.batch;
    summary.bucket_bytes = sync_options(config_).bucket, summary.bucket_cap = bucket_cap_;
    summary.train_loss = last_loss_;
    summary.evaluation = evaluation_;
    summary.flops_per_step = trainer_->model().flops(samples_of_a_step());
    summary.peak = machine_.peak, summary.gemm = machine_.gemm;
    summary.network = machine_.network;
    if (prediction_) {
      summary.predicted_step = prediction_->step, summary.profiled_forward = prediction_->backward_begins;
    }
    if (profile_) summary.profile = Profile{this_workload(), profile_->result(), profile_->steps()};
    return summary;
  }

  // Bytes counted = bytes planned = the formula, on every rank and in sum.
  void add_traffic(Summary& summary, std::span<const schedule::Bucket> buckets) const {
    require_evaluation_traffic();
    if (steps_ == 0) return;
    Elements planned = 0;
    for (const auto& bucket : buckets) {
      const Elements n = bucket.elements.count;
      planned += schedule::bucket_traffic(config_.zero, n, world_.size(), config_.accumulate, Bytes(sizeof(T)),
                                          sync_options(config_));
    }
    summary.planned_wire_per_step = Bytes(sizeof(T)) * planned;
    const std::int64_t mine[] = {sent_.steps.value(), trainer_->control_bytes().value()};
    const auto all = world_.all_gather(mine);
    Bytes counted{0};
    for (std::size_t r = 0; r < all.size(); r += 2) {
      summary.wire_by_rank.push_back(Bytes(all[r] / steps_));
      counted += Bytes(all[r]);
      summary.control_per_step += Bytes(all[r + 1]);
    }
    if (counted != summary.planned_wire_per_step * steps_) {
      throw AgreedError(
          describe({fmt::format("{} bytes of gradients and weights were sent in {} steps, the formula says {}",
                                counted.value(), steps_, (summary.planned_wire_per_step * steps_).value()),
                    "measured and predicted would not be of the same thing", ""}));
    }
    summary.wire_per_step = Bytes(counted.value() / steps_);
  }

  void add_reproducible_cost(Summary& summary, ReproducibleCost cost, std::span<const schedule::Bucket> buckets) const {
    const auto ratio = [](const ReproducibleCost& c) { return c.in_micro_shards / c.as_one_batch; };
    const double mine[] = {ratio(cost), cost.in_micro_shards.count(), cost.as_one_batch.count(),
                           cost.partial_sums.as_double()};
    const auto all = world_.all_gather(mine);
    double worst = 0;
    for (std::size_t r = 0; r < all.size(); r += std::size(mine)) {
      cost.partial_sums = std::max(cost.partial_sums, Bytes(static_cast<std::int64_t>(all[r + 3])));
      if (all[r] <= worst) continue;
      worst = all[r];
      cost.in_micro_shards = Seconds(all[r + 1]), cost.as_one_batch = Seconds(all[r + 2]);
    }
    parallel::SyncOptions plain = sync_options(config_);
    plain.micro_shards = 0;
    for (const schedule::Bucket& bucket : buckets) {
      cost.default_wire +=
          Bytes(sizeof(T)) * schedule::bucket_traffic(config_.zero, bucket.elements.count, world_.size(),
                                                      config_.accumulate, Bytes(sizeof(T)), plain);
    }
    summary.reproducible_cost = cost;
  }

  void require_evaluation_traffic() const {
    const Elements once = schedule::zero_evaluation_traffic(config_.zero, trainer_->layout().size(), world_.size());
    const double planned = (Bytes(sizeof(T)) * once * sent_.evaluation_passes).as_double();
    const double counted = world_.sum(sent_.evaluations.as_double());
    if (counted == planned) return;
    throw AgreedError(
        describe({fmt::format("{} bytes of weights were sent in evaluations, the formula says {}", counted, planned),
                  "measured and predicted would not be of the same thing", ""}));
  }

  void add_times(Summary& summary) const {
    std::vector<double> totals, forward, exposed;
    for (const StepRecord& record : records_->kept()) {
      totals.push_back(record.seconds.total.count()), exposed.push_back(record.seconds.exposed.count());
      forward.push_back(record.seconds.forward.count());
    }
    if (totals.empty()) return;
    summary.median_step = Seconds(world_.maximum(*median(without_first(totals))));
    summary.median_forward = Seconds(world_.maximum(*median(without_first(forward))));
    summary.median_exposed = Seconds(*median(without_first(exposed)));
    const double batch = static_cast<double>(samples_of_a_step());
    summary.samples_per_second = batch / summary.median_step->count();
    summary.mfu = (summary.flops_per_step / *summary.median_step) / summary.peak;
    const Flops done = summary.flops_per_step + trainer_->model().recomputation(samples_of_a_step());
    summary.hfu = (done / *summary.median_step) / summary.peak;
  }

  void add_communication(Summary& summary, const std::vector<StepCommunication>& steps) const {
    if (steps.empty() || world_.size() == 1) return;
    summary.communication = without_first(steps);
    std::vector<Seconds> measured, predicted, skew;
    for (const StepCommunication& step : summary.communication) {
      measured.push_back(step.measured), predicted.push_back(step.predicted), skew.push_back(step.skew);
    }
    summary.all_reduce_measured = median(measured), summary.all_reduce_predicted = median(predicted);
    summary.median_skew = median(skew);
    std::vector<Seconds> exposed;
    for (const StepRecord& record : records_->kept())
      exposed.push_back(record.seconds.exposed - record.seconds.control - record.seconds.gather - record.seconds.room);
    summary.hidden_fraction = std::max(0.0, 1 - *median(without_first(exposed)) / *summary.all_reduce_measured);
  }

  void add_shown(Summary& summary, const std::vector<BucketRecord>& buckets) {
    if (!shown_) return;
    const auto is_shown = [&](const BucketRecord& bucket) { return bucket.step == shown_->record.step; };
    if (world_.size() > 1) std::copy_if(buckets.begin(), buckets.end(), std::back_inserter(shown_->buckets), is_shown);
    summary.shown = std::move(shown_);
  }

  Config config_;
  const comm::Environment& environment_;
  comm::Communicator world_;
  SessionOptions options_;
  Observer& observer_;
  long steps_ = 0;
  Data data_;
  Machine machine_;
  std::unique_ptr<Trainer<T>> trainer_;
  std::unique_ptr<collectives::Engine> engine_;  // goes first: what it has under way works on the trainer's memory
  std::optional<StepSamples> samples_;
  std::optional<RecordKeeper> records_;
  std::optional<ProfileRecorder> profile_;
  std::optional<ShownStep> shown_;
  TracedStep traced_;
  std::string events_;
  std::optional<cost::BucketCapChoice> bucket_cap_;
  std::optional<AlgorithmChoice> algorithms_;
  std::optional<cost::StepPrediction> prediction_;
  std::optional<double> last_loss_;
  std::optional<Evaluation> evaluation_;
  typename Trainer<T>::Sent sent_;
  std::uint64_t hash_ = 0;  // of all weights
  bool weights_finite_ = true;
  std::vector<T> together_;
  std::span<const T> whole_;  // rank 0: all weights
};

}  // namespace

Summary run_session(const Config& config, const comm::Environment& environment, const SessionOptions& options,
                    Observer& observer) {
  environment.world().set_deadline(config.deadline);
  agree_on(environment.world(), [&] { validate(config); });
  require_equal(environment.world(), stable_hash(to_toml(config)),
                {"the options are not the same on all ranks", "every rank must run the same steps",
                 "Give all ranks the same files and arguments"});
  if (config.type == "double") return Session<double>(config, environment, options, observer).run();
  return Session<float>(config, environment, options, observer).run();
}

}  // namespace annulet::train
