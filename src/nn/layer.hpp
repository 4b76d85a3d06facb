#pragma once
// A layer: one differentiable step y = f(x; w) of a model. Models run their layers forwards, then backwards.
// A layer keeps no activations but its own masks or statistics; weights and gradients are the pass's.
#include <span>
#include <string_view>
#include <vector>

#include "annulet/nn/layout.hpp"
#include "annulet/nn/model.hpp"
#include "nn/matrix.hpp"

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
  std::uint64_t first_draw = 0;  // as in Batch
  Elements time = 1;             // rows of a sample: the tokens of a sequence

  const T* weight(TensorPlace place) const { return weights.at(place.tensor, place.first); }
  T* gradient(TensorPlace place) const { return gradients.at(place.tensor, place.first); }
};

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
