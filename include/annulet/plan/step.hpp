#pragma once
// A data-parallel training step before it is made: compute from operations, peak and efficiency, communication bucket
// by bucket by the engine's own prediction (cost::predict_step), and the two together:
//   waiting     compute, then one ring all-reduce of all gradients, or what a stage of ZeRO or a compression sends
//   buckets     predict_step: blocking, or overlapped by a progress thread or the device itself
//   bound       max(compute, all-reduce): no overlap can do better
// MFU = model operations / (ranks x peak x time) (Chowdhery et al. 2022, appendix B); HFU counts recomputation too.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "annulet/cost/machine.hpp"
#include "annulet/cost/step.hpp"
#include "annulet/plan/answer.hpp"
#include "annulet/plan/flops.hpp"

namespace annulet::plan {

// What a model computes and sends, whatever it is; operations for one token (or sample).
struct Work {
  std::string model;
  std::vector<Elements> tensors;            // in the order in which backward finishes their gradients
  std::vector<Flops> backward;              // [tensor], with what is recomputed before it
  Flops per_token;                          // forward and backward: model operations
  Flops recomputed_per_token{0};            // besides
  std::vector<std::size_t> layers{};        // [tensor] as plan::layers
  std::optional<std::size_t> tied_layer{};  // which is used at both ends

  Elements parameters() const;
};

Work work_of(const Architecture& architecture, Recomputation recomputation = Recomputation::none,
             const FlopsOptions& options = {});

struct StepQuestion {
  Work work;
  cost::Machine machine;
  std::string type = "bf16";  // which of the device's peaks
  double efficiency = 0;      // of the peak; 0: the machine file's
  int ranks = 1;
  Elements tokens = 0;  // of a step, over all ranks (samples, for a model without tokens)
  Bytes gradient{2};    // of an element on the wire
  schedule::SyncOptions sync{};
  std::string machine_name{};  // the file, for messages; empty: the machine's source
  int stage = 0;               // of ZeRO

  const std::string& machine_text() const { return machine_name.empty() ? machine.source : machine_name; }
};

// Throws InputError for less than one rank or token.
void require_sense(const StepQuestion& question);

struct Rate {
  FlopRate peak;
  double efficiency = 1;
};

// What a rank computes at. Throws InputError if the machine does not say.
Rate rate_of(const StepQuestion& question);

// Ranks on the machine's nodes, filled one after the other.
cost::Network network_of(const cost::Machine& machine, int ranks);

// The largest rank's share of the tokens, on a device that moves bytes by itself.
cost::StepInput step_input(const StepQuestion& question, cost::Driver driver);

struct StepPlan {
  Seconds compute{0};     // forward, backward and what is recomputed
  Seconds all_reduce{0};  // of all gradients at once, or what else is sent
  cost::StepPrediction blocking, overlapped;

  Seconds waiting() const { return compute + all_reduce; }
  Seconds bound() const { return std::max(compute, all_reduce); }
};
StepPlan predict(const StepQuestion& question);

// Part of the ranks' peak that model operations (with `recomputed`: all of them) take of a step.
double utilisation(const StepQuestion& question, Seconds step, bool recomputed = false);

Answer plan_step(const StepQuestion& question);

// For the step of a profile that a run recorded: what that run would predict.
Answer plan_profiled_step(const cost::StepInput& input, const std::string& what);

// Step time against bucket cap, the curve drawn.
Answer plan_bucket(const cost::StepInput& input, const std::string& what);

}  // namespace annulet::plan
