#include "annulet/train/trainer.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <utility>

#include "annulet/base/error.hpp"
#include "annulet/train/agree.hpp"
#include "annulet/train/data_check.hpp"

namespace annulet::train {
namespace {

// Splits the time of a step without gaps: each lap ends where the next begins.
class Laps {
 public:
  explicit Laps(Instant begin) : last_(begin) {}
  Instant end(Seconds& lap) {
    const Instant now = Clock::now();
    lap += now - last_;
    return last_ = now;
  }

 private:
  Instant last_;
};

constexpr Elements kEvaluationRows = 256;  // of outputs that a rank evaluates at once, at least

// Samples of the largest step.
Elements largest_step(const data::SamplerOptions& options) {
  return options.order == data::Order::draws ? options.batch : std::min(options.batch, options.samples);
}

Elements parts(Elements n, Elements size) { return n / size + (n % size != 0 ? 1 : 0); }

// Passes for their time: weights are gathered where they must be, gradients stay where they are.
template <class T>
class WeightsOnly final : public nn::Progress {
 public:
  explicit WeightsOnly(parallel::ModelState<T>& state) : state_(state) {}
  void weights_needed(std::size_t layer) override { state_.weights_needed(layer); }
  void weights_done(std::size_t layer) override { state_.weights_done(layer); }

 private:
  parallel::ModelState<T>& state_;
};

std::optional<Reproducible> make_reproducible(const Config& config, collectives::Engine& engine) {
  if (config.reproducible == 0) return std::nullopt;
  return std::optional<Reproducible>(std::in_place, engine, config.reproducible, config.accumulate, config.zero);
}

}  // namespace

template <class T>
std::unique_ptr<nn::Model<T>> make_model(const Config& config, Elements classes, Elements capacity) {
  if (config.model == "mlp") return nn::make_mlp<T>(mlp_options(config), capacity);
  nn::GptOptions options = gpt_options(config);
  if (options.vocabulary == 0) options.vocabulary = classes;
  return nn::make_gpt<T>(options, capacity);
}

template std::unique_ptr<nn::Model<float>> make_model<float>(const Config&, Elements, Elements);
template std::unique_ptr<nn::Model<double>> make_model<double>(const Config&, Elements, Elements);

data::SamplerOptions sampler_options(const Config& config, const data::Source& train) {
  using data::Order;
  const Order order = train.random() ? Order::draws : config.shuffle ? Order::shuffled : Order::sequential;
  return {train.samples(), config.batch, config.seed, order};
}

long total_steps(const Config& config, const data::Source& train) {
  return config.steps >= 0 ? config.steps : config.epochs * data::steps_per_epoch(sampler_options(config, train));
}

template <class T>
Trainer<T>::Trainer(const Config& config, collectives::Engine& engine, const data::Source& train,
                    const data::Source* test)
    : config_(config),
      engine_(engine),
      train_(train),
      test_(test),
      shape_(train.shape()),
      injection_(parse_injection(config.inject)),
      reproducible_(make_reproducible(config, engine)),
      capacity_(largest_pass(largest_step(sampler_options(config, train)))),
      schedule_(train::schedule(config, total_steps(config, train))),
      sampler_(sampler_options(config, train)) {
  if (injection_.kind != Injection::Kind::none && injection_.rank.value_or(0) >= engine.world()) {
    throw InputError(
        {fmt::format("inject = {} names no rank", config.inject), fmt::format("there are {}", engine.world())});
  }
  const Elements vocabulary = config.vocabulary > 0 ? config.vocabulary : shape_.classes;
  require_fitting(config, train, vocabulary, "training");
  require_whole_samples(train);
  if (test != nullptr) {
    require_fitting(config, *test, vocabulary, "test");
    const Elements rows_of_a_sample = std::max<Elements>(1, shape_.tokens);
    const Elements evaluated = std::max<Elements>(1, kEvaluationRows / rows_of_a_sample);
    capacity_ = std::max(capacity_, std::min(evaluated, parts(test->samples(), engine.world())));
  }
  {
    const MemoryScope scope(activations_);
    model_ = make_model<T>(config, shape_.classes, capacity_);
    if (reproducible_) model_->reserve(reproducible_->most_micro_shards());
  }
  state_.emplace(engine, layout(),
                 parallel::ModelStateOptions{.stage = config.zero,
                                             .optimizer = optimizer_options(config),
                                             .sync = sync_options(config),
                                             .accumulate = config.accumulate});
  initialize();
  if (config.check_replicas > 0) replica_check_.emplace(engine, layout());
  if (!reproducible_) control_ = std::make_unique<parallel::Control>(engine);
  features_.resize(static_cast<std::size_t>(capacity_ * shape_.features));
  tokens_.resize(static_cast<std::size_t>(capacity_ * shape_.tokens));
  labels_.resize(static_cast<std::size_t>(capacity_ * shape_.labels));
  values_.resize(static_cast<std::size_t>(capacity_ * shape_.values));
}

// The same on all ranks.
template <class T>
Elements Trainer<T>::largest_pass(Elements samples) const {
  return reproducible_ ? reproducible_->capacity(samples) : parts(parts(samples, engine_.world()), config_.accumulate);
}

// A block at a time: no rank need hold all weights.
template <class T>
void Trainer<T>::initialize() {
  std::vector<T> block(1 << 14);
  for (const nn::Tensor& tensor : layout().tensors()) {
    for (Elements first = 0; first < tensor.count; first += std::ssize(block)) {
      const Elements count = std::min(std::ssize(block), tensor.count - first);
      const auto values = std::span(block).first(static_cast<std::size_t>(count));
      nn::initialize(tensor, config_.seed, first, values);
      state_->weight_sync().assign({tensor.first + first, count}, values);
    }
  }
}

template <class T>
StepRecord Trainer<T>::step() {
  step_began_ = Clock::now();
  Laps laps(step_began_);
  StepRecord record;
  StepSeconds& seconds = record.seconds;
  const bool spoil = inject(injection_, engine_.rank(), number_);
  state_->begin_step();
  const data::Slice slice = next_slice();
  laps.end(seconds.data);

  if (spoil) state_->settle(), state_->weight_sync().spoil();
  const nn::LossSums sums = forward_backward(slice, seconds);
  backward_ended_ = Clock::now();
  if (spoil) state_->weight_sync().restore();
  Laps after(backward_ended_);
  state_->finish();
  after.end(seconds.exposed);
  seconds.exposed += seconds.gather + seconds.room;
  const parallel::ControlRecord mine = record_of(sums);
  after.end(seconds.norm);
  const parallel::ControlRecord agreed = agree(mine);
  after.end(seconds.control);
  seconds.exposed += seconds.control;
  control_bytes_ = engine_.traffic()[comm::Purpose::control] - traffic_[comm::Purpose::control];
  record.wire = account();
  sent_.steps += record.wire;
  require_finite(agreed);

  record.step = number_;
  record.loss = agreed.mean_loss();
  record.learning_rate = schedule_.at(number_);
  record.gradient_norm = std::sqrt(agreed.squared_norm);
  record.samples = slice.global;
  record.payload = sync().payload();
  seconds.pack = sync().packing(), seconds.unpack = sync().unpacking();
  state_->update({record.learning_rate, nn::clip_scale(record.gradient_norm, config_.clip)});
  const Instant end = after.end(seconds.optimizer);
  seconds.optimizer += seconds.norm;
  seconds.total = end - step_began_;
  if (flips(injection_, engine_.rank(), number_)) flip_a_bit();
  if (replica_check_ && (number_ + 1) % config_.check_replicas == 0) require_equal_replicas();
  ++number_;
  return record;
}

template <class T>
std::vector<MemoryRecord> Trainer<T>::memory() const {
  const parallel::StateMemory held = state_->memory(), planned = state_->planned_memory();
  const Elements of_a_sample = Elements{sizeof(T)} * (shape_.features + shape_.values) +
                               Elements{sizeof(std::int32_t)} * (shape_.tokens + shape_.labels);
  std::vector<MemoryRecord> records{
      {"weights", true, {held.weights}, {planned.weights}},
      {"gradients", true, {held.gradients}, {planned.gradients}},
      {"optimiser state", true, {held.optimizer}, {planned.optimizer}},
      {"buckets in flight", false, {held.buckets}, {planned.buckets}},
      {"activations", false, {activations_.held()}, {Bytes(sizeof(T)) * model_->owned_elements()}},
      {"scratch",
       false,
       {scratch_.held() + engine_.scratch()},
       {Bytes(capacity_ * of_a_sample) + engine_.planned_scratch()}}};
  if (reproducible_) {
    records.insert(records.begin() + 4, {"partial sums", false, {held.partial_sums}, {planned.partial_sums}});
  }
  if (planned.residual > Bytes(0)) {
    records.insert(records.begin() + 3, {"unsent gradients", true, {held.residual}, {planned.residual}});
  }
  return records;
}

template <class T>
data::Slice Trainer<T>::next_slice() {
  const Elements epoch = number_ / sampler_.steps_per_epoch();
  if (epoch != sampler_.epoch()) sampler_.begin_epoch(epoch);
  const Elements step = number_ % sampler_.steps_per_epoch();
  return reproducible_ ? sampler_.slice(step, 0, 1) : sampler_.slice(step, engine_.rank(), engine_.world());
}

// What the rank takes of the samples that next_slice() gave it.
template <class T>
data::Slice Trainer<T>::part_of(const data::Slice& slice, Elements pass) {
  return reproducible_ ? reproducible_->slice(slice, pass) : slice.micro(pass, config_.accumulate);
}

template <class T>
nn::Batch<T> Trainer<T>::gather(const data::Source& source, const data::Slice& slice) {
  const auto rows = static_cast<Elements>(slice.indices.size());
  const auto first = [&](auto& buffer, Elements width) {
    return std::span(buffer).first(static_cast<std::size_t>(rows * width));
  };
  const data::Rows<T> out{first(features_, shape_.features), first(tokens_, shape_.tokens),
                          first(labels_, shape_.labels), first(values_, shape_.values)};
  source.gather(slice.indices, out);
  return {rows, out.features, out.labels, out.values, out.tokens, slice.first_draw};
}

// Gradients of the mean over the *global* batch: a rank's sum over its targets, divided by the global count (windows of
// training are whole, so every sample has as many targets).
template <class T>
nn::LossSums Trainer<T>::forward_backward(const data::Slice& slice, StepSeconds& seconds) {
  const Elements targets = slice.global * std::max<Elements>(1, shape_.tokens);
  const double scale = 1.0 / static_cast<double>(targets);
  nn::LossSums total;
  Laps laps(Clock::now());
  for (Elements k = 0; k < passes(); ++k) {
    nn::Batch<T> batch = gather(train_, part_of(slice, k));
    if (reproducible_) reproducible_->mark(batch);
    state_->begin_micro_batch(k, passes());
    laps.end(seconds.data);
    const nn::LossSums sums = model_->forward(batch, state_->weights(), nn::Mode::train, *state_);
    total.loss += sums.loss, total.correct += sums.correct, total.targets += sums.targets;
    if (reproducible_) reproducible_->add(sums);
    backward_began_ = laps.end(seconds.forward);
    take_waits(seconds.forward, seconds);
    model_->backward(batch, state_->weights(), state_->gradients(), scale, state_->accumulation(k), *state_);
    laps.end(seconds.backward);
    take_waits(seconds.backward, seconds);
  }
  return total;
}

// What a pass waited for is communication, not computation.
template <class T>
void Trainer<T>::take_waits(Seconds& lap, StepSeconds& seconds) const {
  const Seconds weights = state_->waited_for_weights() - seconds.gather;
  const Seconds room = state_->waited_for_gradients() - seconds.room;
  lap -= weights + room;
  seconds.gather += weights, seconds.room += room;
}

template <class T>
parallel::ControlRecord Trainer<T>::record_of(const nn::LossSums& sums) {
  parallel::ControlRecord record;
  if (reproducible_) {
    sync().add_owned_squares(reproducible_->record().squared_norm);
    if (!sync().finite()) reproducible_->record().bad = true;
    return record;
  }
  record.loss = sums.loss;
  record.correct = static_cast<double>(sums.correct);
  record.targets = static_cast<double>(sums.targets);
  record.squared_norm = sync().owned_squared_norm();
  if (!std::isfinite(sums.loss) || !sync().finite()) record.lowest_bad_rank = engine_.rank();
  return record;
}

template <class T>
parallel::ControlRecord Trainer<T>::agree(const parallel::ControlRecord& mine) {
  return reproducible_ ? reproducible_->agree() : control_->agree(mine);
}

template <class T>
void Trainer<T>::require_finite(const parallel::ControlRecord& agreed) const {
  const bool somebody = agreed.lowest_bad_rank != parallel::ControlRecord::kNobody;
  if (!somebody && std::isfinite(agreed.squared_norm)) return;
  const std::string where =
      somebody ? fmt::format("rank {}, step {}: loss or gradients are not finite", agreed.lowest_bad_rank, number_)
               : fmt::format("step {}: the summed gradients are not finite", number_);
  throw AgreedError(describe(
      {where, "training stops on all ranks", "Lower optimizer.lr, set optimizer.clip, or look for bad samples"}));
}

template <class T>
void Trainer<T>::flip_a_bit() {
  settle();
  for (std::size_t bucket = 0; bucket < sync().buckets().size(); ++bucket) {
    const std::span<T> kept = state_->weight_sync().kept_values(bucket);
    if (kept.empty()) continue;
    using Bits = std::conditional_t<sizeof(T) == sizeof(std::uint32_t), std::uint32_t, std::uint64_t>;
    kept.front() = std::bit_cast<T>(std::bit_cast<Bits>(kept.front()) ^ Bits{1});
    return;
  }
}

template <class T>
void Trainer<T>::require_equal_replicas() {
  settle();
  const std::string difference = replica_check_->difference(state_->weight_sync());
  if (difference.empty()) return;
  throw AgreedError(
      describe({fmt::format("step {}: the weights are not the same on all ranks: {}", number_, difference),
                "the replicas must stay equal to the last bit",
                "Look for a rank with bad memory, other hardware or another build"}));
}

// Without micro-shards: the samples that the default would give the rank, in as many passes as it would make or as
// there is memory for.
template <class T>
Seconds Trainer<T>::pass_time(bool in_micro_shards) {
  const data::Slice whole = sampler_.slice(0, 0, 1), share = sampler_.slice(0, engine_.rank(), engine_.world());
  const Elements most = parts(whole.global, engine_.world());
  const Elements count = in_micro_shards ? passes() : std::max(config_.accumulate, parts(most, capacity_));
  WeightsOnly<T> weights(*state_);
  Seconds time{0};
  state_->begin_step();
  for (Elements k = 0; k < count; ++k) {
    nn::Batch<T> batch = gather(train_, in_micro_shards ? reproducible_->slice(whole, k) : share.micro(k, count));
    if (in_micro_shards) reproducible_->mark(batch);
    state_->begin_micro_batch(std::min(k, passes() - 1), passes());
    const Instant began = Clock::now();
    model_->forward(batch, state_->weights(), nn::Mode::train, weights);
    model_->backward(batch, state_->weights(), state_->gradients(), 1, nn::Accumulate::overwrite, weights);
    time += Clock::now() - began;
  }
  time -= state_->waited_for_weights();
  const Instant began = Clock::now();
  OrderFreeSum exact;
  in_micro_shards ? sync().add_owned_squares(exact) : static_cast<void>(sync().owned_squared_norm());
  return time + Seconds(Clock::now() - began);
}

template <class T>
ReproducibleCost Trainer<T>::reproducible_cost() {
  constexpr int kRounds = 3;
  settle();
  ReproducibleCost cost{Seconds(1e300), Seconds(1e300)};
  for (int round = 0; round < kRounds; ++round) {
    cost.by_default = std::min(cost.by_default, pass_time(false));
    cost.in_micro_shards = std::min(cost.in_micro_shards, pass_time(true));
  }
  state_->settle();
  account();  // no step's
  return cost;
}

// Bytes counted where they were posted must be those of the plans, in every step. Nothing is under way.
template <class T>
Bytes Trainer<T>::account() {
  using comm::Purpose;
  const comm::Traffic& now = engine_.traffic();
  const auto since = [&](Purpose purpose) { return now[purpose] - traffic_[purpose]; };
  const Bytes sent = since(Purpose::gradients) + since(Purpose::weights);
  const Bytes planned = state_->launched_bytes() - launched_;
  if (sent != planned) {
    throw RunError({fmt::format("step {}: {} bytes of gradients and weights were sent, {} were planned", number_,
                                sent.value(), planned.value()),
                    "measured and predicted would not be of the same thing"});
  }
  if (now.posted != now.completed) {
    throw RunError({fmt::format("step {}: {} messages were posted, {} completed", number_, now.posted, now.completed)});
  }
  traffic_ = now, launched_ += planned;
  return sent;
}

template <class T>
const SentBytes& Trainer<T>::settle() {
  state_->settle();
  sent_.steps += account();
  return sent_;
}

template <class T>
void Trainer<T>::visit_weights(const Visitor& visitor) {
  settle();
  state_->weight_sync().visit(visitor);
  account();  // neither a step's nor an evaluation's
}

template <class T>
void Trainer<T>::assign_weights(schedule::Interval elements, std::span<const T> values) {
  settle();
  state_->weight_sync().assign(elements, values);
}

template <class T>
Evaluation Trainer<T>::evaluate() {
  ANNULET_EXPECTS(test_ != nullptr, "evaluation needs a test set");
  const data::Sampler order = data::evaluation_sampler(test_->samples(), capacity_, engine_.world());
  settle();
  parallel::ControlRecord mine;
  for (Elements s = 0; s < order.steps_per_epoch(); ++s) {
    nn::Batch<T> batch = gather(*test_, order.slice(s, engine_.rank(), engine_.world()));
    if (reproducible_) reproducible_->mark_samples(batch);
    state_->begin_evaluation();
    const nn::LossSums sums = model_->forward(batch, state_->weights(), nn::Mode::evaluate, *state_);
    mine.loss += sums.loss, mine.correct += static_cast<double>(sums.correct),
        mine.targets += static_cast<double>(sums.targets);
    if (reproducible_) reproducible_->add(sums);
  }
  if (!std::isfinite(mine.loss)) mine.lowest_bad_rank = engine_.rank();
  const parallel::ControlRecord all = agree(mine);
  require_finite(all);
  sent_.evaluations += account(), sent_.evaluation_passes += order.steps_per_epoch();
  ANNULET_EXPECTS(all.targets == static_cast<double>(test_->targets()), "evaluation counts each target once");
  Evaluation evaluation{all.mean_loss(), std::nullopt, test_->samples(), test_->targets()};
  if (shape_.labels > 0) evaluation.accuracy = all.correct / all.targets;
  return evaluation;
}

template class Trainer<float>;
template class Trainer<double>;

}  // namespace annulet::train
