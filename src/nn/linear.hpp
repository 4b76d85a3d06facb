#pragma once
// Linear: y = x W^T + b, with W [out, in] and b [out], started as U(-s, s), s = 1 / sqrt(in).
#include <string>

#include "nn/layer.hpp"

namespace annulet::nn {

template <class T>
class Linear final : public Layer<T> {
 public:
  // Tensors are called `name`.bias and `name`.weight.
  Linear(std::string name, Elements inputs, Elements outputs);

  Elements outputs() const override { return outputs_; }
  std::vector<Tensor> tensors() const override;
  void bind(const Layout& layout) override;
  void forward(const Pass<T>& pass, Matrix<const T> x, Matrix<T> y) override;
  void backward(const Pass<T>& pass, Matrix<const T> x, Matrix<const T> y, Matrix<const T> dy, Matrix<T> dx) override;

 private:
  struct Place {
    std::size_t tensor = 0;  // index in the layout
    Elements first = 0;      // offset in the flat buffers
  };

  std::string name_;
  Elements inputs_, outputs_;
  Place weight_, bias_;
};

}  // namespace annulet::nn
