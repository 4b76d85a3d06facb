#pragma once
// One training step and one evaluation, on one rank of a data-parallel world: the full model, this rank's slice of the
// global batch, gradients summed while backward runs, the same update everywhere.
// After the first step nothing is allocated.
#include <memory>
#include <vector>

#include "annulet/base/aligned.hpp"
#include "annulet/data/source.hpp"
#include "annulet/parallel/control.hpp"
#include "annulet/parallel/gradient_sync.hpp"
#include "annulet/train/config.hpp"
#include "annulet/train/inject.hpp"
#include "annulet/train/records.hpp"

namespace annulet::train {

// The model of a configuration; a gpt's vocabulary is `classes` where the configuration leaves it open.
template <class T>
std::unique_ptr<nn::Model<T>> make_model(const Config& config, Elements classes, Elements capacity);

// Throws InputError, calling the data by `name`, where their samples do not fit the model of the configuration.
void require_fitting(const Config& config, const data::Source& source, Elements vocabulary, std::string_view name);

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

  // The next optimiser step. Throws AgreedError on every rank if any rank's loss or gradients are not finite, RunError
  // if the bytes on the wire are not those of the plan.
  StepRecord step();

  // Every test sample once, over all ranks. Needs a test set.
  Evaluation evaluate();

  const nn::Model<T>& model() const { return *model_; }
  const nn::Layout& layout() const { return model_->layout(); }
  std::span<T> weights() { return weights_; }
  Elements steps_per_epoch() const { return sampler_.steps_per_epoch(); }
  const parallel::GradientSync<T>& sync() const { return *sync_; }

  // From the next step on writes when each gradient is final to `where`, which stays until the last step.
  void record(parallel::GradientInstants& where) { sync_->record(where); }

  // Of the last step: when it and its (last) backward pass began and ended, and the control bytes it sent.
  Instant step_began() const { return step_began_; }
  Instant backward_began() const { return backward_began_; }
  Instant backward_ended() const { return backward_ended_; }
  Bytes control_bytes() const { return control_bytes_; }

 private:
  data::Slice next_slice();
  nn::Batch<T> gather(const data::Source& source, const data::Slice& slice);
  nn::LossSums forward_backward(const data::Slice& slice, bool spoil, StepSeconds& seconds);
  std::vector<T> spoil_weights();
  void restore_weights(const std::vector<T>& before);
  parallel::ControlRecord record_of(const nn::LossSums& sums) const;
  void require_finite(const parallel::ControlRecord& agreed) const;
  void update(double norm, double learning_rate);
  void account(StepRecord& record);

  Config config_;
  collectives::Engine& engine_;
  const data::Source& train_;
  const data::Source* test_;
  data::SampleShape shape_;
  long number_ = 0;  // of the next step
  Injection injection_;
  Elements capacity_;
  std::unique_ptr<nn::Model<T>> model_;
  AlignedVector<T> weights_, gradients_;
  std::unique_ptr<nn::Optimizer<T>> optimizer_;
  nn::Schedule schedule_;
  data::Sampler sampler_;
  std::unique_ptr<parallel::GradientSync<T>> sync_;
  std::unique_ptr<parallel::Control> control_;

  AlignedVector<T> features_, values_;  // of the micro-batch being worked on
  std::vector<std::int32_t> tokens_, labels_;
  Instant step_began_{}, backward_began_{}, backward_ended_{};
  comm::Traffic traffic_;  // at the end of the last step or evaluation
  Bytes control_bytes_{0};
};

}  // namespace annulet::train
