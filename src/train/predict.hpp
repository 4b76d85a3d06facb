#pragma once
// The step that a run is about to make, as cost::predict_step wants it.
#include "annulet/train/profile.hpp"
#include "machine.hpp"

namespace annulet::train {

// `config` with its bucket caps decided; gradients of `element` bytes each.
cost::StepInput step_input(const Config& config, const Machine& machine, const Profile& profile, Bytes element,
                           int world);

// Samples of the largest rank's share of a step.
Elements batch_per_rank(Elements batch, int world);

}  // namespace annulet::train
