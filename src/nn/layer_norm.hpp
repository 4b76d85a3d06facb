#pragma once
// LayerNorm (Ba, Kiros & Hinton, arXiv:1607.06450) over the columns of each row:
//   y = (x - mean) / sqrt(variance + 1e-5) * weight + bias, variance by the population formula (PyTorch's)
// Three passes over a row, in the first-level cache; the mean and 1 / sqrt(...) of each row are kept for backward.
#include <string>

#include "annulet/base/aligned.hpp"
#include "nn/layer.hpp"

namespace annulet::nn {

template <class T>
class LayerNorm final : public Layer<T> {
 public:
  // Tensors `name`.bias and `name`.weight [width], which start as 0 and 1. `capacity` rows at most.
  LayerNorm(std::string name, Elements width, Elements capacity);

  Elements outputs() const override { return width_; }
  std::vector<Tensor> tensors() const override;
  void bind(const Layout& layout) override;
  void forward(const Pass<T>& pass, Matrix<const T> x, Matrix<T> y) override;
  void backward(const Pass<T>& pass, Matrix<const T> x, Matrix<const T> y, Matrix<const T> dy, Matrix<T> dx) override;

 private:
  struct Moments {
    T mean, inverse_deviation;
  };

  void parameter_gradients(const Pass<T>& pass, Matrix<const T> x, Matrix<const T> dy) const;

  // Of some rows.
  struct Rows {
    Elements first, count;
  };
  void sum_parameter_gradients(Rows rows, Matrix<const T> x, Matrix<const T> dy, T* d_bias, T* d_weight) const;

  std::string name_;
  Elements width_;
  TensorPlace weight_, bias_;
  AlignedVector<Moments> moments_;  // [capacity], of the last forward pass
};

}  // namespace annulet::nn
