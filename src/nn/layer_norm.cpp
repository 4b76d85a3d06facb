#include "nn/layer_norm.hpp"

#include <algorithm>
#include <cmath>

#include "nn/vector_math.hpp"

namespace annulet::nn {
namespace {

using Eigen::internal::padd;
using Eigen::internal::pmadd;
using Eigen::internal::pmul;
using Eigen::internal::psub;

constexpr double kEpsilon = 1e-5;

}  // namespace

template <class T>
LayerNorm<T>::LayerNorm(std::string name, Elements width, Elements capacity)
    : name_(std::move(name)), width_(width), moments_(static_cast<std::size_t>(capacity)) {}

template <class T>
std::vector<Tensor> LayerNorm<T>::tensors() const {
  return {Tensor{name_ + ".bias", {width_}, {Initial::Kind::constant, 0}},
          Tensor{name_ + ".weight", {width_}, {Initial::Kind::constant, 1}}};
}

template <class T>
void LayerNorm<T>::bind(const Layout& layout) {
  weight_ = place_of(layout, name_ + ".weight");
  bias_ = place_of(layout, name_ + ".bias");
}

template <class T>
void LayerNorm<T>::forward(const Pass<T>& pass, Matrix<const T> x, Matrix<T> y) {
  using P = Packet<T>;
  const T* weight = pass.weight(weight_);
  const T* bias = pass.weight(bias_);
  const T per_column = 1 / static_cast<T>(width_);
  for (Elements r = 0; r < x.rows; ++r) {
    const T* row = x.row(r);
    const T mean = per_column * sum_of<T>(
                                    width_, [](P v) { return v; }, row);
    const P center = splat<T>(mean);
    const auto squared = [&](P v) { return pmul(psub(v, center), psub(v, center)); };
    const T variance = per_column * sum_of<T>(width_, squared, row);
    const T inverse = 1 / std::sqrt(variance + static_cast<T>(kEpsilon));
    moments_[static_cast<std::size_t>(r)] = {mean, inverse};
    const auto normalised = [&](P v, P w, P b) { return pmadd(pmul(psub(v, center), splat<T>(inverse)), w, b); };
    transform(width_, y.row(r), normalised, row, weight, bias);
  }
}

// With n = (x - mean) / deviation and g = dy * weight:  dx = (g - mean(g) - n mean(g n)) / deviation
template <class T>
void LayerNorm<T>::backward(const Pass<T>& pass, Matrix<const T> x, Matrix<const T>, Matrix<const T> dy, Matrix<T> dx) {
  using P = Packet<T>;
  pass.progress.gradient_begins(bias_.tensor);
  pass.progress.gradient_begins(weight_.tensor);
  parameter_gradients(pass, x, dy);
  pass.progress.gradient_ready(bias_.tensor);
  pass.progress.gradient_ready(weight_.tensor);
  if (dx.empty()) return;
  const T* weight = pass.weight(weight_);
  const T per_column = 1 / static_cast<T>(width_);
  for (Elements r = 0; r < x.rows; ++r) {
    const Moments& moments = moments_[static_cast<std::size_t>(r)];
    const P mean = splat<T>(moments.mean), inverse = splat<T>(moments.inverse_deviation);
    const auto normal = [&](P v) { return pmul(psub(v, mean), inverse); };
    const T sum_g = sum_of<T>(
        width_, [](P d, P w) { return pmul(d, w); }, dy.row(r), weight);
    const T sum_gn = sum_of<T>(
        width_, [&](P v, P d, P w) { return pmul(normal(v), pmul(d, w)); }, x.row(r), dy.row(r), weight);
    const P mean_g = splat<T>(per_column * sum_g), mean_gn = splat<T>(per_column * sum_gn);
    const auto slope = [&](P v, P d, P w) {
      return pmul(inverse, psub(psub(pmul(d, w), mean_g), pmul(normal(v), mean_gn)));
    };
    transform(width_, dx.row(r), slope, x.row(r), dy.row(r), weight);
  }
}

// Micro-shards are added up with both tensors side by side.
template <class T>
void LayerNorm<T>::parameter_gradients(const Pass<T>& pass, Matrix<const T> x, Matrix<const T> dy) const {
  T* d_weight = pass.gradient(weight_);
  T* d_bias = pass.gradient(bias_);
  if (!pass.micro_shards.empty()) {
    T* const both = pass.tree->extra(2 * width_);
    pass.sum_over_rows(x.rows, 2 * width_, both, [&](Elements row, Elements rows, T* to, Accumulate) {
      std::fill_n(to, 2 * width_, T(0));
      sum_parameter_gradients({row, rows}, x, dy, to, to + width_);
    });
    std::copy_n(both, width_, d_bias), std::copy_n(both + width_, width_, d_weight);
    return;
  }
  if (pass.accumulate == Accumulate::overwrite) {
    std::fill_n(d_weight, width_, T(0));
    std::fill_n(d_bias, width_, T(0));
  }
  sum_parameter_gradients({0, x.rows}, x, dy, d_bias, d_weight);
}

template <class T>
void LayerNorm<T>::sum_parameter_gradients(Rows rows, Matrix<const T> x, Matrix<const T> dy, T* d_bias,
                                           T* d_weight) const {
  using P = Packet<T>;
  for (Elements r = rows.first; r < rows.first + rows.count; ++r) {
    const Moments& moments = moments_[static_cast<std::size_t>(r)];
    const P mean = splat<T>(moments.mean), inverse = splat<T>(moments.inverse_deviation);
    transform(
        width_, d_bias, [](P sum, P d) { return padd(sum, d); }, d_bias, dy.row(r));
    const auto added = [&](P sum, P v, P d) { return pmadd(pmul(psub(v, mean), inverse), d, sum); };
    transform(width_, d_weight, added, d_weight, x.row(r), dy.row(r));
  }
}

template class LayerNorm<float>;
template class LayerNorm<double>;

}  // namespace annulet::nn
