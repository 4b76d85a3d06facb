#pragma once
// A step as one rank's program: what it computes, launches and waits for, in order, as train and parallel do it.
//   stage 0     forward; backward, a bucket's exchange launched when its last gradient is final; wait for all; update
//   stage 1, 2  update, a bucket's all-gather launched when it is updated, the last bucket's first; forward, waiting
//   for
//               a bucket where its first layer comes; backward with reduce-scatters (stage 2: a bucket begins when that
//               of its slot has been sent); wait for all
//   stage 3     a bucket is a layer: forward and backward wait for its all-gather, which is launched when a slot for
//               gathered layers is left; reduce-scatters as in stage 2; update
// From the update of one step to that of the next nothing else is under way, so a program of stages 1 and 2 begins with
// it. When forward comes to a tensor's layer is taken from when backward finishes it: both take their time in the same
// proportions.
#include <vector>

#include "annulet/cost/step.hpp"

namespace annulet::cost {

struct Instruction {
  enum class Kind { compute, launch, wait };
  Kind kind;
  Seconds work{0};            // compute
  std::size_t operation = 0;  // launch, wait
};

struct StepProgram {
  std::vector<schedule::Exchange> operations;  // in the order in which they are launched
  std::vector<Instruction> instructions;
  std::vector<std::size_t> of_bucket;  // [bucket] the operation that sums its gradients
  // Indices into `instructions`.
  std::size_t step_begins = 0, backward_begins = 0, backward_ends = 0;
  Seconds update{0};  // what the end of the step has of it
};

// Throws ContractError for a stage that there is not, and at stage 3 without layers.
StepProgram step_program(const StepInput& input);

}  // namespace annulet::cost
