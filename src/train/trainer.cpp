#include "annulet/train/trainer.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

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

Elements parts(Elements n, Elements size) { return n / size + (n % size != 0 ? 1 : 0); }

void require_fitting(const Config& config, const data::Dataset& data, std::string_view name) {
  const auto refuse = [&](std::string what, std::string hint) {
    throw InputError({fmt::format("the {} data do not fit the model: {}", name, what), "", std::move(hint)});
  };
  if (data.features() != config.widths.front()) {
    refuse(fmt::format("samples have {} features, model.widths begins with {}", data.features(), config.widths.front()),
           fmt::format("Begin model.widths with {}", data.features()));
  }
  const bool regression = config.loss == "mse";
  if (regression != (data.classes() == 0)) {
    refuse(regression ? "model.loss = mse wants real values, these are classes"
                      : "model.loss = cross_entropy wants classes, these are real values",
           "Choose the other model.loss");
  }
  const Elements wanted = regression ? data.outputs() : data.classes();
  if (wanted > config.widths.back() || (regression && wanted != config.widths.back())) {
    refuse(fmt::format("there are {} {}, model.widths ends with {}", wanted, regression ? "values a sample" : "classes",
                       config.widths.back()),
           fmt::format("End model.widths with {}", wanted));
  }
}

}  // namespace

long total_steps(const Config& config, Elements train_samples) {
  return config.steps >= 0 ? config.steps : config.epochs * parts(train_samples, config.batch);
}

template <class T>
Trainer<T>::Trainer(const Config& config, collectives::Engine& engine, const data::Dataset& train,
                    const data::Dataset* test)
    : config_(config),
      engine_(engine),
      train_(train),
      test_(test),
      injection_(parse_injection(config.inject)),
      capacity_(parts(parts(std::min(config.batch, train.samples()), engine.world()), config.accumulate)),
      schedule_(train::schedule(config, total_steps(config, train.samples()))),
      sampler_({train.samples(), config.batch, config.seed,
                config.shuffle ? data::Order::shuffled : data::Order::sequential}) {
  if (injection_.kind != Injection::Kind::none && injection_.rank >= engine.world()) {
    throw InputError(
        {fmt::format("inject = {} names no rank", config.inject), fmt::format("there are {}", engine.world())});
  }
  require_fitting(config, train, "training");
  if (test != nullptr) {
    require_fitting(config, *test, "test");
    constexpr Elements kEvaluation = 256;
    capacity_ = std::max(capacity_, std::min(kEvaluation, parts(test->samples(), engine.world())));
  }
  model_ = nn::make_mlp<T>(mlp_options(config), capacity_);
  const auto size = static_cast<std::size_t>(layout().size());
  weights_.resize(size), gradients_.resize(size);
  nn::initialize<T>(layout(), config.seed, weights_);
  optimizer_ = nn::make_optimizer<T>(optimizer_options(config), layout());
  sync_ = std::make_unique<parallel::GradientSync<T>>(engine, layout(), gradients_, sync_options(config));
  control_ = std::make_unique<parallel::Control>(engine);
  features_.resize(static_cast<std::size_t>(capacity_ * train.features()));
  labels_.resize(static_cast<std::size_t>(capacity_));
  values_.resize(static_cast<std::size_t>(capacity_ * train.outputs()));
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
  after.end(seconds.optimizer);
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
nn::Batch<T> Trainer<T>::gather(const data::Dataset& data, const data::Slice& slice) {
  const auto rows = static_cast<Elements>(slice.indices.size());
  const auto first = [&](auto& buffer, Elements width) {
    return std::span(buffer).first(static_cast<std::size_t>(rows * width));
  };
  const auto features = first(features_, data.features());
  const auto labels = first(labels_, data.classes() > 0 ? 1 : 0);
  const auto values = first(values_, data.outputs());
  data.gather<T>(slice.indices, features, labels, values);
  return {rows, features, labels, values, {}, slice.first_draw};
}

// Gradients of the mean over the *global* batch: a rank's sum over its samples, divided by the global count.
template <class T>
nn::LossSums Trainer<T>::forward_backward(const data::Slice& slice, bool spoil, StepSeconds& seconds) {
  const double scale = 1.0 / static_cast<double>(slice.global);
  nn::Progress quiet;
  nn::LossSums total;
  sync_->begin_step();
  Laps laps(Clock::now());
  for (Elements k = 0; k < config_.accumulate; ++k) {
    const nn::Batch<T> batch = gather(train_, slice.micro(k, config_.accumulate));
    if (spoil && batch.samples > 0) features_[0] = std::numeric_limits<T>::quiet_NaN();
    laps.end(seconds.data);
    const nn::LossSums sums = model_->forward(batch, weights_, nn::Mode::train, *sync_);
    total.loss += sums.loss, total.correct += sums.correct, total.targets += sums.targets;
    laps.end(seconds.forward);
    const bool last = k + 1 == config_.accumulate;
    model_->backward(batch, weights_, gradients_, scale, k == 0 ? nn::Accumulate::overwrite : nn::Accumulate::add,
                     last ? static_cast<nn::Progress&>(*sync_) : quiet);
    laps.end(seconds.backward);
  }
  return total;
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
  ANNULET_EXPECTS(all.targets == static_cast<double>(test_->samples()), "evaluation counts each sample once");
  Evaluation evaluation{all.mean_loss(), std::nullopt, test_->samples()};
  if (test_->classes() > 0) evaluation.accuracy = all.correct / all.targets;
  return evaluation;
}

template class Trainer<float>;
template class Trainer<double>;

}  // namespace annulet::train
