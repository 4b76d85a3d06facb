#pragma once
// One training step and one evaluation, on one rank of a data-parallel world: the full model, this rank's slice of the
// global batch, gradients summed while backward runs, the same new weights everywhere, at any stage of ZeRO.
// After the first step nothing is allocated.
#include <memory>
#include <optional>
#include <vector>

#include "annulet/base/aligned.hpp"
#include "annulet/data/source.hpp"
#include "annulet/parallel/control.hpp"
#include "annulet/parallel/model_state.hpp"
#include "annulet/parallel/replica_check.hpp"
#include "annulet/train/config.hpp"
#include "annulet/train/inject.hpp"
#include "annulet/train/records.hpp"
#include "annulet/train/reproducible.hpp"

namespace annulet::train {

// The model of a configuration; a gpt's vocabulary is `classes` where the configuration leaves it open.
template <class T>
std::unique_ptr<nn::Model<T>> make_model(const Config& config, Elements classes, Elements capacity);

// The order in which a configuration takes the samples, and how many optimiser steps it makes on them.
data::SamplerOptions sampler_options(const Config& config, const data::Source& train);
long total_steps(const Config& config, const data::Source& train);

template <class T>
class Trainer {
 public:
  // `engine` has not launched anything yet. Nothing may be under way in it when the trainer goes (destroy the engine
  // first); the data outlive the trainer. `test` may be null.
  // Throws InputError where data and model do not fit together.
  Trainer(const Config& config, collectives::Engine& engine, const data::Source& train, const data::Source* test);

  // The next optimiser step. Throws AgreedError on every rank if any rank's loss or gradients are not finite or, where
  // that is looked at, the weights not the same on all ranks; RunError if the bytes on the wire are not the plan's.
  StepRecord step();

  // Every test sample once, over all ranks. Needs a test set.
  Evaluation evaluate();

  const nn::Model<T>& model() const { return *model_; }
  const nn::Layout& layout() const { return model_->layout(); }
  Elements steps_per_epoch() const { return sampler_.steps_per_epoch(); }
  const parallel::GradientSync<T>& sync() const { return state_->gradient_sync(); }

  // Shows all weights, some elements at a time in layout order; sets some of them. All ranks call it, between steps.
  using Visitor = typename parallel::WeightSync<T>::Visitor;
  void visit_weights(const Visitor& visitor);
  void assign_weights(schedule::Interval elements, std::span<const T> values);

  // What this rank holds, by kind: counted, and planned.
  std::vector<MemoryRecord> memory() const;

  // From the next step on writes when each gradient is final to `where`, which stays until the last step.
  void record(parallel::GradientInstants& where) { state_->gradient_sync().record(where); }

  // Returns when nothing is under way in the engine. What this rank has sent, gradients and weights: for the steps so
  // far, and for `evaluation_passes` forward passes of evaluations.
  const SentBytes& settle();

  // What a reproducible step costs this rank beyond the default's: passes over its samples of step 0 and the norm, as
  // the default divides them and in micro-shards, the best of a few. Gradients are lost. Needs a reproducible run,
  // between steps.
  ReproducibleCost reproducible_cost();

  // Of the last step: when it and its (last) backward pass began and ended, and the control bytes it sent.
  Instant step_began() const { return step_began_; }
  Instant backward_began() const { return backward_began_; }
  Instant backward_ended() const { return backward_ended_; }
  Bytes control_bytes() const { return control_bytes_; }

 private:
  Elements largest_pass(Elements samples) const;
  data::Slice next_slice();
  nn::Batch<T> gather(const data::Source& source, const data::Slice& slice);
  nn::LossSums forward_backward(const data::Slice& slice, StepSeconds& seconds);
  data::Slice part_of(const data::Slice& slice, Elements pass);
  Elements passes() const { return reproducible_ ? reproducible_->passes() : config_.accumulate; }
  parallel::ControlRecord record_of(const nn::LossSums& sums);
  parallel::ControlRecord agree(const parallel::ControlRecord& mine);
  void require_finite(const parallel::ControlRecord& agreed) const;
  void flip_a_bit();
  void require_equal_replicas();
  Seconds pass_time(bool in_micro_shards);
  void initialize();
  void take_waits(Seconds& lap, StepSeconds& seconds) const;
  Bytes account();

  Config config_;
  collectives::Engine& engine_;
  const data::Source& train_;
  const data::Source* test_;
  data::SampleShape shape_;
  long number_ = 0;  // of the next step
  Injection injection_;
  std::optional<Reproducible> reproducible_;  // if it was asked for
  Elements capacity_;
  MemoryAccount activations_{"activations"}, scratch_{"scratch"};
  std::unique_ptr<nn::Model<T>> model_;
  nn::Schedule schedule_;
  data::Sampler sampler_;
  std::optional<parallel::ModelState<T>> state_;
  std::optional<parallel::ReplicaCheck> replica_check_;  // if it was asked for
  std::unique_ptr<parallel::Control> control_;           // not where sums are reproducible

  AlignedVector<T> features_{scratch_}, values_{scratch_};  // of the micro-batch being worked on
  AlignedVector<std::int32_t> tokens_{scratch_}, labels_{scratch_};
  Instant step_began_{}, backward_began_{}, backward_ended_{};
  comm::Traffic traffic_;  // when it was last counted
  Bytes launched_{0};      // by plans, at that time
  SentBytes sent_;
  Bytes control_bytes_{0};
};

}  // namespace annulet::train
