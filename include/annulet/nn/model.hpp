#pragma once
// What a trainer needs of a model: its layout, a forward pass that keeps activations, a backward pass that says when
// each gradient is final, and in both passes which layer's weights are read next. A model owns activations for up to
// `capacity` samples and nothing else; weights and gradients are the caller's. After construction no call allocates,
// but the first backward passes of batches with micro-shards.
#include <cstdint>
#include <span>
#include <string>

#include "annulet/base/labels.hpp"
#include "annulet/base/units.hpp"
#include "annulet/nn/layout.hpp"
#include "annulet/nn/tensor_values.hpp"

namespace annulet::nn {

// Samples of one forward pass: features or, for a language model, sequences of tokens. Classification has `labels`,
// regression has `values`; the others are empty.
template <class T>
struct Batch {
  Elements samples = 0;                    // B; 0 is allowed and does nothing
  std::span<const T> features;             // [B, features]
  std::span<const std::int32_t> labels{};  // [B], or [B, T]: of every token
  std::span<const T> values{};             // [B, outputs]
  std::span<const std::int32_t> tokens{};  // [B, T], T from 1 to the model's context
  std::uint64_t first_draw = 0;            // place of sample 0 in the stream of all samples drawn so far (keys dropout)

  // Samples of each micro-shard, at most 64 for a backward pass, which sums gradients in the fixed tree over them
  // (base/sum_tree.hpp): then those of some consecutive micro-shards, a subtree, are the same bits whatever else the
  // batch holds. `losses`, as many, get the sum of the losses of each. Both empty: the batch is summed as one.
  std::span<const Elements> micro_shards{};
  std::span<double> losses{};
};

// Sums over the samples of a batch, so that ranks can be added up exactly.
struct LossSums {
  double loss = 0;       // sum over targets (cross-entropy; squared error averaged over a sample's outputs)
  Elements correct = 0;  // targets whose largest output is the label; 0 for regression
  Elements targets = 0;  // what the sums are over: samples, or labelled tokens
};

enum class Mode { train, evaluate };       // evaluate: dropout passes its input through
enum class Accumulate { overwrite, add };  // what backward does with the gradient buffer

// Told while a pass runs. Implemented by the overlap scheduler; the default does nothing.
//   forward   layers from the last number (next to the input) to 0, the tied one first and kept until the end
//   backward  the tied one first, done after layer 0, then the others from 0 upwards
// Every layer's weights are asked for in every pass, also where a pass does not need them.
class Progress {
 public:
  virtual ~Progress() = default;
  virtual void weights_needed(std::size_t layer) { (void)layer; }     // the tensors of `layer` are read from here on
  virtual void weights_done(std::size_t layer) { (void)layer; }       // not read again before they are asked for
  virtual void gradient_begins(std::size_t tensor) { (void)tensor; }  // is written from here on; perhaps not the first
  virtual void gradient_ready(std::size_t tensor) { (void)tensor; }   // layout().tensors()[tensor] is final
  virtual void pulse() {}  // called every fraction of a millisecond of work: let communication move
};

template <class T>
class Model {
 public:
  virtual ~Model() = default;

  virtual const Layout& layout() const = 0;
  virtual std::string describe() const = 0;  // one line: "mlp 784-256-10 relu, 203,530 parameters"

  // Outputs and loss of a batch; keeps what backward needs.
  virtual LossSums forward(const Batch<T>& batch, TensorValues<const T> weights, Mode mode, Progress& progress) = 0;

  // Gradients of (sum of losses of the last forward's batch) x `scale`; the caller passes 1 / global count of targets.
  // Calls progress.gradient_ready once per tensor, in layout order, also for an empty batch (whose gradients are zero).
  virtual void backward(const Batch<T>& batch, TensorValues<const T> weights, TensorValues<T> gradients, double scale,
                        Accumulate accumulate, Progress& progress) = 0;

  // Outputs of the last forward pass, [B, outputs], or [B, T, vocabulary].
  virtual std::span<const T> outputs() const = 0;

  // Operations of forward and backward for `samples` samples: products only, 2 per multiply-add (PaLM, app. B), and
  // what is done besides to compute activations again in backward.
  virtual Flops flops(Elements samples) const = 0;
  virtual Flops recomputation(Elements) const { return Flops(0); }

  // Memory for backward passes of batches in up to so many micro-shards; before the first of them.
  virtual void reserve(Elements micro_shards) = 0;

  // Elements of the buffers that the model owns, by formula (in its header's terms), not by counting.
  virtual Elements owned_elements() const = 0;
};

}  // namespace annulet::nn
