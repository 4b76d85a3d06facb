#include "annulet/train/trainer.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <utility>

#include "annulet/base/error.hpp"
#include "annulet/train/agree.hpp"

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

[[noreturn]] void refuse(std::string_view name, const std::string& what, std::string hint) {
  throw InputError({fmt::format("the {} data do not fit the model: {}", name, what), "", std::move(hint)});
}

void require_fitting_mlp(const Config& config, const data::SampleShape& shape, std::string_view name) {
  if (shape.tokens > 0) refuse(name, "an mlp reads features, these are tokens", "Use model.kind = gpt");
  if (shape.features != config.widths.front()) {
    refuse(name,
           fmt::format("samples have {} features, model.widths begins with {}", shape.features, config.widths.front()),
           fmt::format("Begin model.widths with {}", shape.features));
  }
  const bool regression = config.loss == "mse";
  if (regression != (shape.labels == 0)) {
    refuse(name,
           regression ? "model.loss = mse wants real values, these are classes"
                      : "model.loss = cross_entropy wants classes, these are real values",
           "Choose the other model.loss");
  }
  const Elements wanted = regression ? shape.values : shape.classes;
  if (wanted > config.widths.back() || (regression && wanted != config.widths.back())) {
    refuse(name,
           fmt::format("there are {} {}, model.widths ends with {}", wanted, regression ? "values a sample" : "classes",
                       config.widths.back()),
           fmt::format("End model.widths with {}", wanted));
  }
}

// Gradients are divided by the number of targets before anybody counts them.
void require_whole_samples(const data::Source& train) {
  if (train.targets() == train.samples() * std::max<Elements>(1, train.shape().tokens)) return;
  refuse("training", "some windows have tokens without a label", "Train on windows that start at random");
}

}  // namespace

void require_fitting(const Config& config, const data::Source& source, Elements vocabulary, std::string_view name) {
  const data::SampleShape shape = source.shape();
  if (config.model == "mlp") return require_fitting_mlp(config, shape, name);
  if (shape.tokens != config.context) {
    refuse(name, fmt::format("windows have {} tokens, model.context is {}", shape.tokens, config.context),
           "Use windows of the model's context");
  }
  if (shape.classes > vocabulary) {
    refuse(name, fmt::format("there are {} tokens, model.vocabulary is {}", shape.classes, vocabulary),
           fmt::format("Set model.vocabulary to {}", shape.classes));
  }
}

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
      capacity_(parts(parts(largest_step(sampler_options(config, train)), engine.world()), config.accumulate)),
      schedule_(train::schedule(config, total_steps(config, train))),
      sampler_(sampler_options(config, train)) {
  if (injection_.kind != Injection::Kind::none && injection_.rank >= engine.world()) {
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
  model_ = make_model<T>(config, shape_.classes, capacity_);
  const auto size = static_cast<std::size_t>(layout().size());
  weights_.resize(size), gradients_.resize(size);
  nn::initialize<T>(layout(), config.seed, weights_);
  optimizer_ = nn::make_optimizer<T>(optimizer_options(config), layout());
  sync_ = std::make_unique<parallel::GradientSync<T>>(engine, layout(), gradients_, sync_options(config));
  control_ = std::make_unique<parallel::Control>(engine);
  features_.resize(static_cast<std::size_t>(capacity_ * shape_.features));
  tokens_.resize(static_cast<std::size_t>(capacity_ * shape_.tokens));
  labels_.resize(static_cast<std::size_t>(capacity_ * shape_.labels));
  values_.resize(static_cast<std::size_t>(capacity_ * shape_.values));
}

template <class T>
StepRecord Trainer<T>::step() {
  step_began_ = Clock::now();
  Laps laps(step_began_);
  StepRecord record;
  StepSeconds& seconds = record.seconds;
  const bool spoil = inject(injection_, engine_.rank(), number_);
  const data::Slice slice = next_slice();
  laps.end(seconds.data);

  const nn::LossSums sums = forward_backward(slice, spoil, seconds);
  backward_ended_ = Clock::now();
  Laps after(backward_ended_);
  sync_->finish();
  after.end(seconds.exposed);
  const parallel::ControlRecord mine = record_of(sums);
  after.end(seconds.norm);
  const parallel::ControlRecord agreed = control_->agree(mine);
  after.end(seconds.control);
  seconds.exposed += seconds.control;
  require_finite(agreed);

  record.step = number_;
  record.loss = agreed.mean_loss();
  record.learning_rate = schedule_.at(number_);
  record.gradient_norm = std::sqrt(agreed.squared_norm);
  record.samples = slice.global;
  update(record.gradient_norm, record.learning_rate);
  const Instant end = after.end(seconds.optimizer);
  seconds.optimizer += seconds.norm;
  account(record);
  seconds.total = end - step_began_;
  ++number_;
  return record;
}

template <class T>
data::Slice Trainer<T>::next_slice() {
  const Elements epoch = number_ / sampler_.steps_per_epoch();
  if (epoch != sampler_.epoch()) sampler_.begin_epoch(epoch);
  return sampler_.slice(number_ % sampler_.steps_per_epoch(), engine_.rank(), engine_.world());
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
nn::LossSums Trainer<T>::forward_backward(const data::Slice& slice, bool spoil, StepSeconds& seconds) {
  const Elements targets = slice.global * std::max<Elements>(1, shape_.tokens);
  const double scale = 1.0 / static_cast<double>(targets);
  const std::vector<T> spoilt = spoil ? spoil_weights() : std::vector<T>{};
  nn::Progress quiet;
  nn::LossSums total;
  sync_->begin_step();
  Laps laps(Clock::now());
  for (Elements k = 0; k < config_.accumulate; ++k) {
    const nn::Batch<T> batch = gather(train_, slice.micro(k, config_.accumulate));
    laps.end(seconds.data);
    const nn::LossSums sums = model_->forward(batch, weights_, nn::Mode::train, *sync_);
    total.loss += sums.loss, total.correct += sums.correct, total.targets += sums.targets;
    backward_began_ = laps.end(seconds.forward);
    const bool last = k + 1 == config_.accumulate;
    model_->backward(batch, weights_, gradients_, scale, k == 0 ? nn::Accumulate::overwrite : nn::Accumulate::add,
                     last ? static_cast<nn::Progress&>(*sync_) : quiet);
    laps.end(seconds.backward);
  }
  if (spoil) restore_weights(spoilt);
  return total;
}

// For tests: a NaN in every tensor of this rank, for one step. Gives what was there.
template <class T>
std::vector<T> Trainer<T>::spoil_weights() {
  std::vector<T> before;
  for (const nn::Tensor& tensor : layout().tensors()) {
    if (tensor.count == 0) continue;
    before.push_back(
        std::exchange(weights_[static_cast<std::size_t>(tensor.first)], std::numeric_limits<T>::quiet_NaN()));
  }
  return before;
}

template <class T>
void Trainer<T>::restore_weights(const std::vector<T>& before) {
  auto value = before.begin();
  for (const nn::Tensor& tensor : layout().tensors()) {
    if (tensor.count > 0) weights_[static_cast<std::size_t>(tensor.first)] = *value++;
  }
}

template <class T>
parallel::ControlRecord Trainer<T>::record_of(const nn::LossSums& sums) const {
  parallel::ControlRecord record;
  record.loss = sums.loss;
  record.correct = static_cast<double>(sums.correct);
  record.targets = static_cast<double>(sums.targets);
  record.squared_norm = sync_->owned_squared_norm();
  if (!std::isfinite(sums.loss) || !sync_->finite()) record.lowest_bad_rank = engine_.rank();
  return record;
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
void Trainer<T>::update(double norm, double learning_rate) {
  optimizer_->begin_step();
  optimizer_->update(0, weights_, gradients_, {learning_rate, nn::clip_scale(norm, config_.clip)});
}

// Bytes counted where they were posted must be those of the plan, in every step.
template <class T>
void Trainer<T>::account(StepRecord& record) {
  const comm::Traffic& now = engine_.traffic();
  record.payload = Bytes(sizeof(T)) * layout().size();
  record.wire = now[comm::Purpose::gradients] - traffic_[comm::Purpose::gradients];
  control_bytes_ = now[comm::Purpose::control] - traffic_[comm::Purpose::control];
  if (record.wire != sync_->planned_bytes()) {
    throw RunError({fmt::format("step {}: {} gradient bytes were sent, {} were planned", number_, record.wire.value(),
                                sync_->planned_bytes().value()),
                    "measured and predicted would not be of the same thing"});
  }
  if (now.posted != now.completed) {
    throw RunError({fmt::format("step {}: {} messages were posted, {} completed", number_, now.posted, now.completed)});
  }
  traffic_ = now;
}

template <class T>
Evaluation Trainer<T>::evaluate() {
  ANNULET_EXPECTS(test_ != nullptr, "evaluation needs a test set");
  const data::Sampler order = data::evaluation_sampler(test_->samples(), capacity_, engine_.world());
  nn::Progress quiet;
  parallel::ControlRecord mine;
  for (Elements s = 0; s < order.steps_per_epoch(); ++s) {
    const nn::Batch<T> batch = gather(*test_, order.slice(s, engine_.rank(), engine_.world()));
    const nn::LossSums sums = model_->forward(batch, weights_, nn::Mode::evaluate, quiet);
    mine.loss += sums.loss, mine.correct += static_cast<double>(sums.correct),
        mine.targets += static_cast<double>(sums.targets);
  }
  if (!std::isfinite(mine.loss)) mine.lowest_bad_rank = engine_.rank();
  const parallel::ControlRecord all = control_->agree(mine);
  require_finite(all);
  traffic_ = engine_.traffic();
  ANNULET_EXPECTS(all.targets == static_cast<double>(test_->targets()), "evaluation counts each target once");
  Evaluation evaluation{all.mean_loss(), std::nullopt, test_->samples(), test_->targets()};
  if (shape_.labels > 0) evaluation.accuracy = all.correct / all.targets;
  return evaluation;
}

template class Trainer<float>;
template class Trainer<double>;

}  // namespace annulet::train
