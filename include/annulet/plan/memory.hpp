#pragma once
// What a rank holds and sends under ZeRO (Rajbhandari et al. 2020), for P parameters on d ranks with w bytes a weight,
// g a gradient and K of optimiser state:
//   stage 0  w P          g P        K P           all-reduce
//   stage 1  w P          g P        K P / d       reduce-scatter, all-gather
//   stage 2  w P          g P / d    K P / d       reduce-scatter of each bucket as it gets ready, all-gather
//   stage 3  w P / d      g P / d    K P / d       and the weights gathered for forward and again for backward
// Sent by a rank in a step of k micro-batches: (d-1)/d of
//   stages 0 and 1  (g + w) P      stage 2  (k g + w) P      stage 3  k (g + 2 w) P
// Where d does not divide P the largest shard counts.
#include <string>

#include "annulet/base/units.hpp"
#include "annulet/plan/answer.hpp"
#include "annulet/plan/architecture.hpp"

namespace annulet::plan {

// Bytes per parameter.
struct StateBytes {
  std::int64_t weight = 2, gradient = 2, optimizer = 12;  // BF16 mixed: the optimiser holds float weights and moments
};
constexpr StateBytes kMixed{2, 2, 12};
constexpr StateBytes kFloat{4, 4, 8};  // this engine with Adam

struct StageMemory {
  int stage = 0;
  Bytes weights{0}, gradients{0}, optimizer{0};
  Bytes sent{0};  // per step, gradients and weights

  Bytes total() const { return weights + gradients + optimizer; }
};

// 0 <= stage <= 3, ranks and micro_batches at least 1.
StageMemory stage_memory(Elements parameters, int ranks, int stage, StateBytes bytes, int micro_batches = 1);

struct MemoryQuestion {
  std::string model;
  Elements parameters = 0;
  Elements largest_layer = 0;  // parameters of the largest layer that comes and goes at stage 3; 0: not known
  Elements tied_layer = 0;     // of the tied embedding, which stays from its first use to the last; 0: there is none
  int ranks = 1;
  int micro_batches = 1;
  StateBytes bytes{};
  Bytes bucket{25 << 20};
  Bytes activations{0}, recomputed_activations{0};  // of a micro-batch; 0: not known
  std::string activations_formula{};
  bool recompute = false;  // counts into `total` instead of all activations
  Bytes device{0};         // what a rank has; 0: not known
};

// Parameters of the largest block, or of what stands outside the blocks, tensor by tensor, but for the tied embedding;
// and of that.
Elements largest_layer(const Architecture& architecture);
Elements tied_layer(const Architecture& architecture);

// Beside the states, with the turns of schedule/slots.hpp and schedule/layer_uses.hpp: gradient buckets, and at stage
// 3, where a bucket is a layer, the gathered weights of layers; the tied embedding has a slot of its own for each. No
// more than all gradients and weights.
Bytes buckets_in_flight(const MemoryQuestion& question, int stage);

Answer plan_memory(const MemoryQuestion& question);

}  // namespace annulet::plan
