#include "nn/linear.hpp"

#include <algorithm>
#include <cmath>

#include "annulet/base/error.hpp"
#include "nn/product.hpp"

namespace annulet::nn {
namespace {

// sums [C] = (or +=) sum over r of m [B, C], rows in order: the order of the additions never depends on alignment.
template <class T>
void sum_rows(Matrix<const T> m, T* __restrict sums, Accumulate accumulate) {
  if (accumulate == Accumulate::overwrite) std::fill_n(sums, m.columns, T(0));
  for (Elements r = 0; r < m.rows; ++r) {
    const T* row = m.row(r);
    for (Elements c = 0; c < m.columns; ++c) sums[c] += row[c];
  }
}

}  // namespace

template <class T>
Linear<T>::Linear(std::string name, Elements inputs, Elements outputs)
    : name_(std::move(name)), inputs_(inputs), outputs_(outputs) {
  prepare_products();
}

template <class T>
std::vector<Tensor> Linear<T>::tensors() const {
  const Initial initial{Initial::Kind::uniform, 1 / std::sqrt(static_cast<double>(inputs_))};
  return {Tensor{name_ + ".bias", {outputs_}, initial}, Tensor{name_ + ".weight", {outputs_, inputs_}, initial}};
}

template <class T>
void Linear<T>::bind(const Layout& layout) {
  const auto place = [&](const std::string& name) {
    const Tensor* tensor = layout.find(name);
    ANNULET_EXPECTS(tensor != nullptr, "a layer is bound to a layout that holds its tensors");
    return Place{static_cast<std::size_t>(tensor - layout.tensors().data()), tensor->first};
  };
  weight_ = place(name_ + ".weight");
  bias_ = place(name_ + ".bias");
}

template <class T>
void Linear<T>::forward(const Pass<T>& pass, Matrix<const T> x, Matrix<T> y) {
  const Matrix<const T> w(pass.weights.data() + weight_.first, outputs_, inputs_);
  multiply_forward(x, w, pass.weights.data() + bias_.first, y, pass.progress);
}

template <class T>
void Linear<T>::backward(const Pass<T>& pass, Matrix<const T> x, Matrix<const T>, Matrix<const T> dy, Matrix<T> dx) {
  sum_rows(dy, pass.gradients.data() + bias_.first, pass.accumulate);
  pass.progress.gradient_ready(bias_.tensor);
  const Matrix<T> dw(pass.gradients.data() + weight_.first, outputs_, inputs_);
  multiply_outer(dy, x, dw, pass.accumulate, pass.progress);
  pass.progress.gradient_ready(weight_.tensor);
  const Matrix<const T> w(pass.weights.data() + weight_.first, outputs_, inputs_);
  if (!dx.empty()) multiply_backward(dy, w, dx, pass.progress);
}

template class Linear<float>;
template class Linear<double>;

}  // namespace annulet::nn
