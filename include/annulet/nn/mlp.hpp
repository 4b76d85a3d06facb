#pragma once
// The multilayer perceptron: Linear layers with an activation (and dropout) between them, and a loss at the end.
//   h_0 = x,  h_{K+1} = dropout(activation(h_K W_K^T + b_K)),  outputs = h_last W_last^T + b_last
// Tensors are `layers.K.weight` [out, in] and `layers.K.bias` [out], K counted from the input, and start as U(-s, s)
// with s = 1 / sqrt(in) (PyTorch's default). They lie in the order bias, weight, from the last layer to the first.
#include <cstdint>
#include <memory>
#include <vector>

#include "annulet/base/units.hpp"
#include "annulet/nn/model.hpp"

namespace annulet::nn {

enum class Activation {
  relu,
  gelu,       // x Phi(x), by erf
  gelu_tanh,  // the tanh approximation (Hendrycks & Gimpel, arXiv:1606.08415)
  tanh,
};

enum class Loss {
  cross_entropy,  // of the softmax of the outputs, against labels
  mse,            // mean over all elements of the squared difference to the values
};

struct MlpOptions {
  std::vector<Elements> widths;              // inputs, hidden layers, outputs: two or more, each at least 1
  Activation activation = Activation::relu;  // after every Linear but the last
  double dropout = 0;                        // share of activations set to 0 in training, in [0, 1)
  Loss loss = Loss::cross_entropy;
  std::uint64_t seed = 0;  // of the dropout masks
};

// Holds activations of up to `capacity` samples: capacity * (2 or, with dropout, 4 * hidden widths + 2 * outputs +
// 2 * the largest width) elements.
// Throws InputError for widths, dropout or a capacity out of range.
template <class T>
std::unique_ptr<Model<T>> make_mlp(const MlpOptions& options, Elements capacity);

}  // namespace annulet::nn
