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

// The bucket cap for `auto`, the same on every rank: rank 0's. `profile`, or an estimate of it. Predicts on the machine
// file's network, else on the emulated link, else on the link that cost assumes: nothing that was measured at the
// start.
struct BucketCapInput {
  const Config& config;
  const Machine& machine;
  const std::optional<cost::Machine>& file;
  const std::optional<Profile>& profile;
  std::vector<Elements> tensors;
  std::vector<std::size_t> layers;  // as Workload has them
  std::optional<std::size_t> tied_layer;
  Bytes element;
  Flops flops;  // forward and backward of one rank
};
cost::BucketCapChoice choose_bucket_cap(const comm::Communicator& communicator, const BucketCapInput& input);

// The algorithm of every bucket, as the algorithm option takes it; on the same network, rank 0's on every rank.
struct AlgorithmChoice {
  std::string option;
  std::string basis;
};
AlgorithmChoice choose_algorithms(const comm::Communicator& communicator, const BucketCapInput& input);

}  // namespace annulet::train
