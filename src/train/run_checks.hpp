#pragma once
// What every run checks, whoever makes it: before the first step on all ranks together, then in and after the steps.
// All are collective and throw AgreedError, unless they say otherwise.
#include "annulet/comm/communicator.hpp"
#include "annulet/train/data.hpp"
#include "annulet/train/trainer.hpp"

namespace annulet::train {

// Options that make sense, the same on all ranks.
void require_valid_options(const comm::Communicator& world, const Config& config);

// The data, the same on all ranks.
Data load_equal_data(const comm::Communicator& world, const Config& config);

// In a reproducible run: micro-shards enough for `ranks`, and one arithmetic in all processes of `world`.
void require_possible_reproducibility(const comm::Communicator& world, const Config& config, int ranks);

// A step. What goes wrong on this rank only is std::runtime_error and says in which step.
template <class T>
StepRecord make_step(Trainer<T>& trainer, long step);

// All ranks know the same of the weights.
void require_finite_weights(bool finite);

}  // namespace annulet::train
