#include "annulet/parallel/model_state.hpp"

#include <fmt/format.h>

#include "annulet/base/error.hpp"
#include "annulet/parallel/sparse_gradients.hpp"
#include "reproducible_gradients.hpp"
#include "sharded_gradients.hpp"

namespace annulet::parallel {
namespace {

template <class T>
std::unique_ptr<GradientSync<T>> make_gradients(collectives::Engine& engine, const nn::Layout& layout,
                                                AlignedVector<T>& all, StateAccounts& accounts,
                                                const ModelStateOptions& options) {
  const bool sparse = options.sync.compression.kind == schedule::Compression::Kind::top_k;
  ANNULET_EXPECTS(!sparse || options.stage == 0, "sparse gradients are gathered whole by every rank");
  if (keeps_slots(options.sync, options.stage, engine.world(), options.accumulate)) {
    return std::make_unique<ReproducibleGradients<T>>(
        engine, layout, options.sync, options.stage,
        schedule::rank_sums(
            {options.sync.micro_shards, engine.world(), engine.rank(), options.accumulate, options.stage == 3}),
        accounts);
  }
  if (options.stage >= 2) {
    return std::make_unique<ShardedGradients<T>>(
        engine, layout, buckets_of(layout, options.stage, Bytes(sizeof(T)), options.sync), options.sync, accounts);
  }
  all.resize(static_cast<std::size_t>(layout.size()));
  if (sparse) return std::make_unique<SparseGradients<T>>(engine, layout, all, options.sync, accounts);
  return std::make_unique<GradientSync<T>>(engine, layout, all, options.sync,
                                           schedule::gradient_collective(options.stage));
}

template <class T>
std::unique_ptr<WeightSync<T>> make_weights(collectives::Engine& engine, const nn::Layout& layout,
                                            std::span<const schedule::Bucket> buckets, StateAccounts& accounts,
                                            const ModelStateOptions& options) {
  if (options.stage == 0) return make_replicated_weights<T>(layout, buckets, accounts.weights);
  if (options.stage == 3)
    return make_sharded_weights<T>(engine, layout, buckets, {options.sync, accounts, options.freed});
  return make_gathered_weights<T>(engine, layout, buckets, options.sync, accounts.weights);
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

void require_planned(const StateMemory& held, const StateMemory& planned) {
  if (held == planned) return;
  const auto text = [](const StateMemory& m) {
    return fmt::format("{} + {} + {} + {} + {} + {}", m.weights.value(), m.gradients.value(), m.optimizer.value(),
                       m.buckets.value(), m.partial_sums.value(), m.residual.value());
  };
  throw RunError({fmt::format("weights, gradients, optimiser state, buckets, partial sums and unsent gradients take {} "
                              "bytes, {} were planned",
                              text(held), text(planned)),
                  "counted and predicted would not be of the same thing"});
}

}  // namespace

template <class T>
ModelState<T>::ModelState(collectives::Engine& engine, const nn::Layout& layout, const ModelStateOptions& options) {
  ANNULET_EXPECTS(options.stage >= 0 && options.stage < schedule::kZeroStages, "ZeRO has stages 0 to 3");
  gradients_ = make_gradients<T>(engine, layout, all_gradients_, accounts_, options);
  weights_ = make_weights<T>(engine, layout, gradients_->buckets(), accounts_, options);
  {
    const MemoryScope scope(accounts_.optimizer);
    optimizer_ = make_optimizer<T>(options.optimizer, layout, *weights_, gradients_->buckets().size());
  }
  planned_ = planned(layout, {options.stage, options.optimizer, options.sync, engine.rank(), engine.world(),
                              Bytes(sizeof(T)), options.accumulate});
  require_planned(memory(), planned_);
}

template <class T>
void ModelState<T>::begin_step() {
  gradients_->begin_step();
  weights_->begin(Passes::train);
  weights_before_ = weights_->waited(), gradients_before_ = gradients_->waited();
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
