#include "annulet/parallel/model_state.hpp"

#include "annulet/base/error.hpp"
#include "reproducible_gradients.hpp"

namespace annulet::parallel {
namespace {

template <class T>
std::unique_ptr<GradientSync<T>> make_reproducible_gradients(collectives::Engine& engine, const nn::Layout& layout,
                                                             const ModelStateOptions& options) {
  return std::make_unique<ReproducibleGradients<T>>(
      engine, layout, options.sync, schedule::gradient_collective(options.stage),
      schedule::rank_sums(options.sync.micro_shards, engine.world(), engine.rank(), options.accumulate));
}

template <class T>
std::unique_ptr<WeightSync<T>> make_weights(collectives::Engine& engine, const nn::Layout& layout,
                                            std::span<const schedule::Bucket> buckets,
                                            const ModelStateOptions& options) {
  if (options.stage == 0) return make_replicated_weights<T>(layout, buckets);
  return make_gathered_weights<T>(engine, layout, buckets, options.sync);
}

template <class T>
std::unique_ptr<nn::Optimizer<T>> make_optimizer(const nn::OptimizerOptions& options, const nn::Layout& layout,
                                                 const WeightSync<T>& weights, std::size_t buckets) {
  std::vector<nn::Slice> owned;
  for (std::size_t b = 0; b < buckets; ++b) {
    const schedule::Interval kept = weights.kept(b);
    owned.push_back({kept.first, kept.count});
  }
  return nn::make_optimizer<T>(options, layout, owned);
}

}  // namespace

template <class T>
ModelState<T>::ModelState(collectives::Engine& engine, const nn::Layout& layout, const ModelStateOptions& options) {
  ANNULET_EXPECTS(options.stage >= 0 && options.stage <= 1, "stages 0 and 1 of ZeRO");
  if (options.sync.micro_shards > 0) {
    gradients_ = make_reproducible_gradients<T>(engine, layout, options);
  } else {
    all_gradients_.resize(static_cast<std::size_t>(layout.size()));
    gradients_ = std::make_unique<GradientSync<T>>(engine, layout, all_gradients_, options.sync,
                                                   schedule::gradient_collective(options.stage));
  }
  weights_ = make_weights<T>(engine, layout, gradients_->buckets(), options);
  optimizer_ = make_optimizer<T>(options.optimizer, layout, *weights_, gradients_->buckets().size());
}

template <class T>
void ModelState<T>::begin_step() {
  gradients_->begin_step();
  weights_->begin(Passes::train);
  waited_before_ = weights_->waited();
}

template <class T>
void ModelState<T>::begin_micro_batch(Elements number, Elements count) {
  gradients_->begin_pass(number);
  if (count > 1) gradients_->begin_micro_batch(number + 1 == count);
  if (number > 0) weights_->begin(Passes::train);
}

template <class T>
void ModelState<T>::finish() {
  gradients_->finish();
  weights_->settle();
}

// From the last bucket to the first: in this order the next forward pass needs them.
template <class T>
void ModelState<T>::update(const nn::Update& update) {
  optimizer_->begin_step();
  for (std::size_t b = gradients_->buckets().size(); b-- > 0;) {
    const schedule::Interval kept = weights_->kept(b);
    optimizer_->update(kept.first, weights_->kept_values(b), gradients_->summed(b, kept), update);
    weights_->updated(b);
  }
}

template <class T>
void ModelState<T>::begin_evaluation() {
  weights_->begin(Passes::evaluate);
}

template class ModelState<float>;
template class ModelState<double>;

}  // namespace annulet::parallel
