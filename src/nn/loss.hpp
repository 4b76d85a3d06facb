#pragma once
// Losses: sums over samples in double, rows and columns in order; a NaN or an infinity in the outputs reaches the loss.
//   cross-entropy of a sample with label k:  log(sum_j exp(o_j)) - o_k
//   squared error of a sample:               sum_j (o_j - v_j)^2 / outputs
#include <memory>

#include "annulet/nn/mlp.hpp"
#include "nn/matrix.hpp"

namespace annulet::nn {

template <class T>
class LossFunction {
 public:
  virtual ~LossFunction() = default;

  // outputs [B, outputs]
  virtual LossSums forward(const Batch<T>& batch, Matrix<const T> outputs) = 0;

  // d_outputs [B, outputs] = gradient of (sum of the samples' losses) x scale, of the last forward pass.
  virtual void backward(const Batch<T>& batch, Matrix<const T> outputs, double scale, Matrix<T> d_outputs) const = 0;
};

template <class T>
std::unique_ptr<LossFunction<T>> make_loss(Loss kind, Elements outputs, Elements capacity);

}  // namespace annulet::nn
