#pragma once
// Optimisers: elementwise updates of a slice of the flat buffers, so that a ZeRO shard is updated by the same call.
// Conventions are PyTorch's (torch.optim.SGD with dampening 0, Adam, AdamW), so that its losses come out here too.
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "annulet/base/units.hpp"
#include "annulet/nn/layout.hpp"

namespace annulet::nn {

struct OptimizerOptions {
  enum class Kind { sgd, adam, adamw };
  enum class DecayOn { all, matrices };  // matrices: only tensors of two or more dimensions decay
  Kind kind = Kind::sgd;
  double momentum = 0;                // SGD
  bool nesterov = false;              // SGD; needs momentum > 0
  double beta1 = 0.9, beta2 = 0.999;  // Adam, AdamW
  double epsilon = 1e-8;              // Adam, AdamW
  double weight_decay = 0;            // SGD, Adam: added to the gradient; AdamW: decoupled
  DecayOn decay_on = DecayOn::all;
};

// What changes from step to step.
struct Update {
  double learning_rate = 0;
  double gradient_scale = 1;  // from clipping: every gradient is multiplied by it first
};

template <class T>
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // Updates elements [first, first + weights.size()) of the model; both spans are that slice of the flat buffers.
  // Every element is updated once per step; begin_step() before the first slice of a step.
  virtual void begin_step() = 0;
  virtual void update(Elements first, std::span<T> weights, std::span<const T> gradients, const Update& update) = 0;

  // State to be saved: named flat vectors ("momentum"; "m", "v") of one element for each that is owned, and the step
  // count.
  struct State {
    std::string name;
    std::span<T> values;
  };
  virtual std::vector<State> state() = 0;
  virtual long steps() const = 0;
  virtual void resume(long steps) = 0;  // after state() has been filled from a checkpoint of that many steps
};

// How many values an optimiser keeps for each element that is owned.
int state_values(const OptimizerOptions& options);

// Elements [first, first + count) of the flat buffers.
struct Slice {
  Elements first = 0;
  Elements count = 0;
};

// State for the elements of `owned`, ascending; only slices within one of these are updated. Throws InputError for
// values out of range (negative decay, beta outside [0, 1), nesterov without momentum, ...).
template <class T>
std::unique_ptr<Optimizer<T>> make_optimizer(const OptimizerOptions& options, const Layout& layout,
                                             std::span<const Slice> owned);

// The same for all elements.
template <class T>
std::unique_ptr<Optimizer<T>> make_optimizer(const OptimizerOptions& options, const Layout& layout);

// Global-norm clipping after the reduction: min(1, max_norm / (norm + 1e-6)); 1 when max_norm is 0 (off).
double clip_scale(double norm, double max_norm);

// `start` + the sum of squares of a slice in double, in a fixed order: granules of 64 elements, each summed in a fixed
// tree, are added one after the other. Slices cut at multiples of 64, each started from the sum of those before, give
// the bits of the whole. NaN or infinite if any element is.
template <class T>
double squared_norm(std::span<const T> values, double start = 0);

// The learning rate of step t = 0, 1, ...
struct Schedule {
  enum class Kind { constant, cosine };
  Kind kind = Kind::constant;
  double peak = 0.1;
  long warmup = 0;  // steps: peak * (t + 1) / (warmup + 1) for t < warmup
  long total = 0;   // cosine: reaches `final` at step `total`
  double final = 0;

  double at(long step) const;
};

}  // namespace annulet::nn
