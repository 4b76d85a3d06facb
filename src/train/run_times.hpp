#pragma once
// What a run's records say of its times: medians with the first five steps left out.
#include <vector>

#include "annulet/comm/communicator.hpp"
#include "annulet/train/records.hpp"

namespace annulet::train {

struct RunTimes {
  const std::vector<StepRecord>& records;
  Elements samples = 0;  // of a step
  Flops recomputation;   // of a step
  bool sparse = false;   // gradients are chosen and added up by top-k
};

// Collective. Steps a second, exposed time, and the share of the peak that summary.flops_per_step makes.
void add_times(Summary& summary, const comm::Communicator& world, const RunTimes& times);

// Collective. What micro-shards cost on the rank that loses most.
void add_reproducible_cost(Summary& summary, const comm::Communicator& world, const ReproducibleCost& mine);

// What was measured and predicted of gradients' collectives in the sampled steps.
void add_communication(Summary& summary, const std::vector<StepRecord>& records,
                       const std::vector<StepCommunication>& sampled);

}  // namespace annulet::train
