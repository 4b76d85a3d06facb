#pragma once
// Elementwise activations: y = f(x), dx = dy f'(x). A NaN goes through every one of them.
#include <string_view>

#include "annulet/nn/mlp.hpp"
#include "nn/layer.hpp"

namespace annulet::nn {

std::string_view to_text(Activation activation);

template <class T>
class ActivationLayer final : public Layer<T> {
 public:
  ActivationLayer(Activation kind, Elements units) : kind_(kind), units_(units) {}

  Elements outputs() const override { return units_; }
  void forward(const Pass<T>& pass, Matrix<const T> x, Matrix<T> y) override;
  void backward(const Pass<T>& pass, Matrix<const T> x, Matrix<const T> y, Matrix<const T> dy, Matrix<T> dx) override;

 private:
  Activation kind_;
  Elements units_;
};

}  // namespace annulet::nn
