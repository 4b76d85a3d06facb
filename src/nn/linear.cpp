#include "nn/linear.hpp"

#include <algorithm>
#include <cmath>

#include "nn/product.hpp"

namespace annulet::nn {
namespace {

// sums [C] = (or +=) sum over some rows r of m [B, C], in order: the order of the additions never depends on alignment.
template <class T>
void sum_rows(Matrix<const T> m, Elements first, Elements rows, T* __restrict sums, Accumulate accumulate) {
  if (accumulate == Accumulate::overwrite) std::fill_n(sums, m.columns, T(0));
  for (Elements r = first; r < first + rows; ++r) {
    const T* row = m.row(r);
    for (Elements c = 0; c < m.columns; ++c) sums[c] += row[c];
  }
}

// What comes in micro-shards is to have the same bits in any company.
template <class T>
Products products_of(const Pass<T>& pass) {
  return pass.micro_shards.empty() ? Products::fastest : Products::own;
}

}  // namespace

template <class T>
Linear<T>::Linear(LinearOptions options) : options_(std::move(options)) {
  prepare_products();
}

template <class T>
std::vector<Tensor> Linear<T>::tensors() const {
  const auto& [name, inputs, outputs, bias, weight] = options_;
  const Initial spread{Initial::Kind::uniform, 1 / std::sqrt(static_cast<double>(inputs))};
  std::vector<Tensor> tensors;
  if (bias) tensors.push_back({name + ".bias", {outputs}, weight ? Initial{} : spread});
  tensors.push_back({name + ".weight", {outputs, inputs}, weight.value_or(spread)});
  return tensors;
}

template <class T>
void Linear<T>::bind(const Layout& layout) {
  weight_ = place_of(layout, options_.name + ".weight");
  if (options_.bias) bias_ = place_of(layout, options_.name + ".bias");
}

template <class T>
void Linear<T>::forward(const Pass<T>& pass, Matrix<const T> x, Matrix<T> y) {
  const Matrix<const T> w(pass.weight(weight_), options_.outputs, options_.inputs);
  multiply_forward(x, w, options_.bias ? pass.weight(bias_) : nullptr, y, pass.progress, products_of(pass));
}

template <class T>
void Linear<T>::backward(const Pass<T>& pass, Matrix<const T> x, Matrix<const T>, Matrix<const T> dy, Matrix<T> dx) {
  if (options_.bias) {
    pass.progress.gradient_begins(bias_.tensor);
    pass.sum_over_rows(dy.rows, dy.columns, pass.gradient(bias_),
                       [&](Elements row, Elements rows, T* to, Accumulate how) { sum_rows(dy, row, rows, to, how); });
    pass.progress.gradient_ready(bias_.tensor);
  }
  pass.progress.gradient_begins(weight_.tensor);
  const Matrix<T> dw(pass.gradient(weight_), options_.outputs, options_.inputs);
  if (pass.micro_shards.empty()) {
    multiply_outer(dy, x, dw, pass.accumulate, pass.progress);
  } else {
    ANNULET_EXPECTS(pass.accumulate == Accumulate::overwrite, "micro-shards are added up by the tree");
    multiply_outer(dy, x, dw, MicroShards{pass.micro_shards, pass.time}, pass.progress);
  }
  pass.progress.gradient_ready(weight_.tensor);
  input_gradient(pass, dy, dx);
}

template <class T>
void Linear<T>::input_gradient(const Pass<T>& pass, Matrix<const T> dy, Matrix<T> dx) const {
  const Matrix<const T> w(pass.weight(weight_), options_.outputs, options_.inputs);
  if (!dx.empty()) multiply_backward(dy, w, dx, pass.progress, products_of(pass));
}

template class Linear<float>;
template class Linear<double>;

}  // namespace annulet::nn
