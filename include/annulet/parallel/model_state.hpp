#pragma once
// A model's weights, gradients and optimiser state on one rank of a data-parallel world, at one of ZeRO's stages
// (schedule/zero.hpp): what the trainer sees of them, the same for all stages. A step is
//   begin_step, then for each micro-batch begin_micro_batch, forward, backward; finish; agree on the norm; update
// with weights(), gradients() and this object as the passes' progress. What is sent is launched and waited for inside;
// weights that an update has sent on their way arrive during the next forward pass, or in settle().
#include <memory>

#include "annulet/base/aligned.hpp"
#include "annulet/nn/optimizer.hpp"
#include "annulet/parallel/gradient_sync.hpp"
#include "annulet/parallel/weight_sync.hpp"

namespace annulet::parallel {

struct ModelStateOptions {
  int stage = 0;
  nn::OptimizerOptions optimizer{};
  SyncOptions sync{};
  Freed freed = Freed::left;  // stage 3
  Elements accumulate = 1;    // micro-batches, where micro-shards are summed
};

template <class T>
class ModelState final : public nn::Progress {
 public:
  // Declares the operations; the engine and the layout outlive this object. All weights are 0. Throws RunError if it
  // holds other memory than planned, MemoryError if there is none.
  ModelState(collectives::Engine& engine, const nn::Layout& layout, const ModelStateOptions& options);

  nn::TensorValues<const T> weights() const { return weights_->values(); }
  nn::TensorValues<T> gradients() { return gradients_->values(); }
  nn::Accumulate accumulation(Elements micro_batch) const { return gradients_->accumulation(micro_batch); }

  void begin_step();
  void begin_micro_batch(Elements number, Elements count);
  void finish();  // returns when all gradients of the step are summed and no weights are under way
  void update(const nn::Update& update);

  void begin_evaluation();  // before each forward pass of it
  void settle() { weights_->settle(); }

  // The passes' reports.
  void weights_needed(std::size_t layer) override { weights_->needed(layer); }
  void weights_done(std::size_t layer) override { weights_->done(layer); }
  void gradient_begins(std::size_t tensor) override { gradients_->gradient_begins(tensor); }
  void gradient_ready(std::size_t tensor) override { gradients_->gradient_ready(tensor); }
  void pulse() override { gradients_->pulse(); }

  const GradientSync<T>& gradient_sync() const { return *gradients_; }
  GradientSync<T>& gradient_sync() { return *gradients_; }
  WeightSync<T>& weight_sync() { return *weights_; }

  // What this rank holds, counted by its allocators; planned_memory() is the same by formula, and equal to it.
  StateMemory memory() const { return counted(accounts_); }
  const StateMemory& planned_memory() const { return planned_; }

  // This rank's part of all plans launched so far.
  Bytes launched_bytes() const { return gradients_->launched_bytes() + weights_->launched_bytes(); }

  // How long passes have waited for weights, and backward for room for gradients, since the beginning of the step.
  Seconds waited_for_weights() const { return weights_->waited() - weights_before_; }
  Seconds waited_for_gradients() const { return gradients_->waited() - gradients_before_; }

 private:
  StateAccounts accounts_;  // of what follows
  StateMemory planned_;
  AlignedVector<T> all_gradients_{accounts_.gradients};  // stages 0 and 1
  std::unique_ptr<GradientSync<T>> gradients_;
  std::unique_ptr<WeightSync<T>> weights_;
  std::unique_ptr<nn::Optimizer<T>> optimizer_;
  Seconds weights_before_{0}, gradients_before_{0};  // waited before this step
};

}  // namespace annulet::parallel
