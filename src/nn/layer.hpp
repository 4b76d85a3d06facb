#pragma once
// A layer: one differentiable step y = f(x; w) of a model. Models run their layers forwards, then backwards.
// A layer keeps no activations but its own masks or statistics; weights and gradients are the pass's.
#include <numeric>
#include <span>
#include <string_view>
#include <vector>

#include "annulet/base/error.hpp"
#include "annulet/nn/layout.hpp"
#include "annulet/nn/model.hpp"
#include "nn/matrix.hpp"
#include "nn/sum_tree.hpp"

namespace annulet::nn {

// Where a tensor came to lie.
struct TensorPlace {
  std::size_t tensor = 0;  // index in the layout
  Elements first = 0;      // offset in a flat buffer
};

// What all layers share during one forward or backward pass.
template <class T>
struct Pass {
  Progress& progress;
  TensorValues<const T> weights;
  TensorValues<T> gradients{};  // empty in forward
  Accumulate accumulate = Accumulate::overwrite;
  Mode mode = Mode::train;
  std::uint64_t first_draw = 0;              // as in Batch
  Elements time = 1;                         // rows of a sample: the tokens of a sequence
  std::span<const Elements> micro_shards{};  // as in Batch
  TreeScratch<T>* tree = nullptr;            // where there are micro-shards

  const T* weight(TensorPlace place) const { return weights.at(place.tensor, place.first); }
  T* gradient(TensorPlace place) const { return gradients.at(place.tensor, place.first); }

  // A sum of `elements` values over all rows: sum(row, rows, to, accumulate) adds up some of them, to what is there or
  // over it.
  template <class Sum>
  void sum_over_rows(Elements rows, Elements elements, T* to, const Sum& sum) const {
    if (micro_shards.empty()) return sum(Elements{0}, rows, to, accumulate);
    ANNULET_EXPECTS(accumulate == Accumulate::overwrite,
                    "what micro-shards are added to, and when, is the tree's matter");
    const auto over = [&](Elements row, Elements count, T* place) { sum(row, count, place, Accumulate::overwrite); };
    SumTree<T>{time, elements, *tree}.add_up(micro_shards, 0, to, over);
  }
};

// Throws ContractError unless the micro-shards, if there are any, make up the batch.
template <class T>
void require_whole_micro_shards(const Batch<T>& batch) {
  if (batch.micro_shards.empty()) return;
  const Elements samples = std::accumulate(batch.micro_shards.begin(), batch.micro_shards.end(), Elements{0});
  ANNULET_EXPECTS(samples == batch.samples, "micro-shards make up the batch");
}

// Throws ContractError if the layout has no tensor of that name.
TensorPlace place_of(const Layout& layout, std::string_view name);

template <class T>
class Layer {
 public:
  virtual ~Layer() = default;

  virtual Elements outputs() const = 0;  // columns of y

  // The layer's tensors in the order in which backward finishes them; bind() tells where they came to lie.
  virtual std::vector<Tensor> tensors() const { return {}; }
  virtual void bind(const Layout& layout) { (void)layout; }

  // x [B, inputs] -> y [B, outputs]
  virtual void forward(const Pass<T>& pass, Matrix<const T> x, Matrix<T> y) = 0;

  // dy [B, outputs] -> dx [B, inputs], which is empty where nobody wants it. x and y are those of the forward pass.
  // Reports each tensor to pass.progress before it writes its gradient, and as soon as that is final, before dx is
  // computed.
  virtual void backward(const Pass<T>& pass, Matrix<const T> x, Matrix<const T> y, Matrix<const T> dy,
                        Matrix<T> dx) = 0;
};

}  // namespace annulet::nn
