#pragma once
// Linear: y = x W^T + b, with W [out, in] and, unless left out, b [out].
#include <optional>
#include <string>

#include "nn/layer.hpp"

namespace annulet::nn {

// Tensors are called `name`.bias and `name`.weight.
struct LinearOptions {
  std::string name;
  Elements inputs = 0, outputs = 0;
  bool bias = true;
  std::optional<Initial> weight{};  // and biases of 0; nothing: both U(-s, s), s = 1 / sqrt(inputs)
};

template <class T>
class Linear final : public Layer<T> {
 public:
  explicit Linear(LinearOptions options);

  Elements outputs() const override { return options_.outputs; }
  std::vector<Tensor> tensors() const override;
  void bind(const Layout& layout) override;
  void forward(const Pass<T>& pass, Matrix<const T> x, Matrix<T> y) override;
  void backward(const Pass<T>& pass, Matrix<const T> x, Matrix<const T> y, Matrix<const T> dy, Matrix<T> dx) override;

  // The last part of backward: dx, if anybody wants it.
  void input_gradient(const Pass<T>& pass, Matrix<const T> dy, Matrix<T> dx) const;

 private:
  LinearOptions options_;
  TensorPlace weight_, bias_;
};

}  // namespace annulet::nn
