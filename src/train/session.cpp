#include "annulet/train/session.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>

#include "accounts.hpp"
#include "annulet/base/random.hpp"
#include "annulet/nn/arithmetic.hpp"
#include "annulet/schedule/exchange.hpp"
#include "annulet/train/agree.hpp"
#include "annulet/train/step_samples.hpp"
#include "annulet/train/trainer.hpp"
#include "annulet/train/weights.hpp"
#include "forecast.hpp"
#include "machine.hpp"
#include "record_keeper.hpp"
#include "run_checks.hpp"
#include "run_times.hpp"
#include "run_trace.hpp"

namespace annulet::train {
namespace {

template <class T>
std::uint64_t hash_of(std::span<const T> values, std::uint64_t before) {
  return stable_hash({reinterpret_cast<const char*>(values.data()), values.size_bytes()}, before);
}

template <class T>
class Session {
 public:
  Session(const Config& config, const comm::Environment& environment, const SessionOptions& options, Observer& observer)
      : config_(config),
        environment_(environment),
        world_(environment.world()),
        options_(options),
        observer_(observer),
        forecast_(world_, options_, Bytes(sizeof(T))),
        trace_(world_, options_.tracer) {}

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
    require_possible_reproducibility(world_, config_, world_.size());
    data_ = load_equal_data(world_, config_);
    steps_ = total_steps(config_, *data_.train);
    agree_on(world_, [&] { require_shown_step(); });
    machine_ = look_at_machine(environment_, config_, sync_options(config_).bucket, options_.machine);
    warn_of_partial_sums();
    decide();
    forecast_.know_the_price_of_moving(config_, machine_);
    engine_ = std::make_unique<collectives::Engine>(
        transport_factory(world_, config_)(), collectives::EngineOptions{machine_.driver.driver, config_.deadline});
    agree_on(world_, [&] { make_trainer(); });
    collectives::require_same_operations(world_, *engine_);
    look_at_weights(nullptr);
    require_equal_replicas("before the first step");
    samples_.emplace(steps_, trainer_->sync().buckets().size(), options_.show_step);
    records_.emplace(steps_);
    agree_on(world_, [&] { forecast_.predict(config_, machine_, this_workload()); });
    if (options_.record_profile) begin_profile();
    trace_.begin(machine_.clock.ahead);
  }

  // Without memory for it, says what would take less.
  void make_trainer() {
    try {
      trainer_ = std::make_unique<Trainer<T>>(config_, *engine_, *data_.train, data_.test.get());
      if (!config_.init.empty()) load_initial_weights();
    } catch (const MemoryError& error) {
      const std::string stage = config_.zero < 3 ? "--zero 3, which shares weights, gradients and optimiser state out "
                                                   "among the ranks, or "
                                                 : "";
      throw RunError({error.problem().what, error.problem().why,
                      fmt::format("Try {}more ranks, a smaller batch or model.recompute", stage)});
    }
  }

  void load_initial_weights() {
    load_weights<T>(config_.init, trainer_->layout(), [&](const nn::Tensor& tensor, std::span<const T> values) {
      trainer_->assign_weights({tensor.first, tensor.count}, values);
    });
  }

  // What is to be known of all weights; rank 0 writes them to `file`, if there is one. Collective.
  void look_at_weights(WeightsFile<T>* file) {
    hash_ = stable_hash(""), weights_finite_ = true;
    trainer_->visit_weights([&](schedule::Interval elements, std::span<const T> values) {
      hash_ = hash_of(values, hash_);
      weights_finite_ = weights_finite_ && parallel::all_finite<T>(values);
      if (file != nullptr) write(*file, elements, values);
    });
  }

  // The other ranks go on in the meantime, and hear of a failure when all are done.
  void write(WeightsFile<T>& file, schedule::Interval elements, std::span<const T> values) {
    try {
      if (not_written_ == nullptr) file.write(elements.first, values);
    } catch (...) {
      not_written_ = std::current_exception();
    }
  }

  void warn_of_partial_sums() {
    const parallel::SyncOptions sync = sync_options(config_);
    if (config_.zero < 2 || !parallel::keeps_slots(sync, config_.zero, world_.size(), config_.accumulate)) return;
    machine_.warnings.push_back(fmt::format(
        "zero = {} with reproducible = {} on {} ranks: sums of micro-shards wait for each other, so that every "
        "rank keeps whole gradients (partial sums)",
        config_.zero, config_.reproducible, world_.size()));
  }

  void require_lone_profile() const {
    if (!options_.record_profile) return;
    std::vector<std::string> others;
    if (config_.zero > 0) others.push_back(fmt::format("--zero {}", config_.zero));
    if (config_.compress != "none") others.push_back("--compress " + config_.compress);
    if (config_.reproducible > 0) others.push_back(fmt::format("--reproducible {}", config_.reproducible));
    if (!others.empty()) {
      throw InputError({fmt::format("a profile is recorded without {}", fmt::join(others, " and ")),
                        "it is of computing alone, and predicts every stage and compression",
                        others.size() == 1 ? "Leave it out" : "Leave them out"});
    }
    if (world_.size() == 1) return;
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

  // What `auto` stands for.
  void decide() {
    if (config_.zero == 3) return require_no_bucket();
    if (forecast_.open(config_)) {
      std::unique_ptr<nn::Model<T>> model;  // a small one, for its layout
      agree_on(world_, [&] { model = make_model<T>(config_, data_.train->shape().classes, 1); });
      const Elements rows = batch_per_rank(samples_of_a_step(), world_.size());
      const Workload work = workload(config_, model->describe(), model->layout(), rows);
      forecast_.decide(config_, machine_, work, model->flops(rows));
    }
    if (!config_.bucket) config_.bucket = sync_options(config_).bucket;  // nothing is sent, or no better one is known
  }

  void require_no_bucket() {
    if (!config_.bucket) return;
    machine_.warnings.push_back(
        fmt::format("bucket = {} is of no use: at stage 3 a bucket is a layer", to_text(*config_.bucket)));
  }

  void begin_profile() {
    profile_.emplace(trainer_->layout().tensors().size(), Bytes(sizeof(T)) * trainer_->layout().size(),
                     samples_->count(steps_));
    trainer_->record(profile_->instants());
  }

  void announce() {
    if (!speaks()) return;
    RunInfo info;
    info.model = trainer_->model().describe();
    info.parameters = trainer_->layout().size();
    info.ranks = world_.size(), info.placement = environment_.placement();
    info.driver = collectives::to_text(machine_.driver.driver), info.driver_reason = machine_.driver.reason;
    info.algorithm = forecast_.algorithm(config_);
    for (const auto& exchange : trainer_->sync().exchanges())
      info.buckets.push_back(schedule::payload(exchange, world_.size()));
    info.network = machine_.network, info.calibration_residual = machine_.calibration_residual;
    info.prediction = forecast_.step(), info.bucket_cap = forecast_.bucket_cap();
    info.steps = steps_;
    if (config_.reproducible > 0) {
      info.sums = fmt::format("in one fixed tree over {} micro-shards, for 1 to {} ranks; {}", config_.reproducible,
                              config_.reproducible, nn::short_arithmetic());
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
      const StepRecord record = make_step(*trainer_, step);
      if (samples_->wants(step)) {
        samples_->add(step, trainer_->sync(), trainer_->step_began(), trainer_->backward_ended());
        if (profile_) {
          profile_->add(record, {trainer_->step_began(), trainer_->backward_began(), trainer_->backward_ended()});
        }
      }
      records_->add(record);
      if (step == options_.show_step) shown_ = ShownStep{record, {}, forecast_.step()};
      trace_.step(*trainer_, record);
      last_loss_ = record.loss;
      if (speaks()) observer_.step(record);
      if (evaluation_is_due(step)) evaluate(step);
    }
    if (steps_ == 0 && data_.test) evaluate(0);
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

  // The weights are safe before anything else is done.
  Summary conclude() {
    sent_ = trainer_->settle();
    std::optional<WeightsFile<T>> file;
    agree_on(world_, [&] {
      if (speaks() && !options_.weights.empty()) file.emplace(options_.weights, trainer_->layout(), data_.vocabulary);
    });
    look_at_weights(file ? &*file : nullptr);
    const std::vector<schedule::Exchange> exchanges(trainer_->sync().exchanges().begin(),
                                                    trainer_->sync().exchanges().end());
    const std::vector<MemoryRecord> memory = trainer_->memory();
    require_equal_replicas("after the last step");
    require_finite_weights(weights_finite_);
    agree_on(world_, [&] {
      if (not_written_ != nullptr) std::rethrow_exception(not_written_);
      if (file) file->commit();
    });
    std::optional<ReproducibleCost> cost;
    if (config_.reproducible > 0 && steps_ > 0) cost = trainer_->reproducible_cost();
    engine_.reset();
    trace_.merge();
    Summary summary = describe_run();
    add_traffic(summary, world_,
                {config_, exchanges, Bytes(sizeof(T)), summary.parameters, steps_, sent_, trainer_->control_bytes()});
    add_memory(summary, world_, {config_, summary.parameters, Bytes(sizeof(T)), memory});
    add_times(summary, world_,
              {records_->kept(), samples_of_a_step(), trainer_->model().recomputation(samples_of_a_step()),
               sync_options(config_).compression.kind == schedule::Compression::Kind::top_k});
    if (cost) add_reproducible_cost(summary, world_, *cost);
    const auto report = samples_->gather(world_, {exchanges, sync_options(config_), machine_.network,
                                                  clock_drift(world_, machine_.clock, config_), options_.show_step});
    add_communication(summary, records_->kept(), report.steps);
    add_shown(summary, report.buckets);
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

  // Most that is reduced at once; at stage 3 the largest layer.
  Bytes bucket_bytes() const {
    if (config_.zero < 3) return sync_options(config_).bucket;
    Elements most = 0;
    for (const schedule::Bucket& bucket : trainer_->sync().buckets()) most = std::max(most, bucket.elements.count);
    return Bytes(sizeof(T)) * most;
  }

  Summary describe_run() const {
    Summary summary;
    summary.seed = config_.seed, summary.ranks = world_.size(), summary.zero = config_.zero;
    summary.compress = config_.compress;
    summary.reproducible = config_.reproducible;
    summary.driver = collectives::to_text(machine_.driver.driver), summary.algorithm = forecast_.algorithm(config_);
    summary.parameters = trainer_->layout().size(), summary.steps = steps_, summary.global_batch = config_.batch;
    summary.bucket_bytes = bucket_bytes(), summary.bucket_cap = forecast_.bucket_cap();
    summary.train_loss = last_loss_;
    summary.evaluation = evaluation_;
    summary.flops_per_step = trainer_->model().flops(samples_of_a_step());
    summary.peak = machine_.peak, summary.gemm = machine_.gemm;
    summary.network = machine_.network;
    if (const auto& step = forecast_.step()) {
      summary.predicted_step = step->step, summary.predicted_forward = step->forward;
    }
    if (profile_) summary.profile = Profile{this_workload(), profile_->result(), profile_->steps()};
    return summary;
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
  Forecast forecast_;
  RunTrace trace_;
  std::optional<double> last_loss_;
  std::optional<Evaluation> evaluation_;
  SentBytes sent_;
  std::uint64_t hash_ = 0;  // of all weights
  bool weights_finite_ = true;
  std::exception_ptr not_written_;  // rank 0: why not all weights were written
};

}  // namespace

Summary run_session(const Config& config, const comm::Environment& environment, const SessionOptions& options,
                    Observer& observer) {
  environment.world().set_deadline(config.deadline);
  require_valid_options(environment.world(), config);
  if (config.type == "double") return Session<double>(config, environment, options, observer).run();
  return Session<float>(config, environment, options, observer).run();
}

}  // namespace annulet::train
