#include "nn/embedding.hpp"

#include <algorithm>

#include "annulet/base/error.hpp"

namespace annulet::nn {
namespace {

template <class T>
void add_row(const T* from, Elements n, T* __restrict to) {
  for (Elements c = 0; c < n; ++c) to[c] += from[c];
}

}  // namespace

template <class T>
std::vector<Tensor> Embedding<T>::tensors() const {
  return {Tensor{"wpe.weight", {options_.context, options_.width}, options_.initial},
          Tensor{"wte.weight", {options_.vocabulary, options_.width}, options_.initial}};
}

template <class T>
void Embedding<T>::bind(const Layout& layout) {
  tokens_ = place_of(layout, "wte.weight");
  positions_ = place_of(layout, "wpe.weight");
}

template <class T>
void Embedding<T>::forward(const Pass<T>& pass, std::span<const std::int32_t> tokens, Matrix<T> y) const {
  const Elements width = options_.width;
  ANNULET_EXPECTS(std::ssize(tokens) == y.rows && pass.time <= options_.context, "there is a token for every row");
  for (Elements r = 0; r < y.rows; ++r) {
    const Elements token = tokens[static_cast<std::size_t>(r)];
    ANNULET_EXPECTS(token >= 0 && token < options_.vocabulary, "a token is a number of the vocabulary");
    std::copy_n(pass.weight(tokens_) + token * width, width, y.row(r));
    add_row(pass.weight(positions_) + r % pass.time * width, width, y.row(r));
  }
}

template <class T>
void Embedding<T>::backward(const Pass<T>& pass, std::span<const std::int32_t> tokens, Matrix<const T> dy) const {
  const auto [vocabulary, context, width, initial, shared] = options_;
  pass.progress.gradient_begins(positions_.tensor);
  T* positions = pass.gradient(positions_);
  if (pass.accumulate == Accumulate::overwrite) std::fill_n(positions, context * width, T(0));
  for (Elements r = 0; r < dy.rows; ++r) add_row(dy.row(r), width, positions + r % pass.time * width);
  pass.progress.gradient_ready(positions_.tensor);

  pass.progress.gradient_begins(tokens_.tensor);
  T* table = pass.gradient(tokens_);
  if (pass.accumulate == Accumulate::overwrite && !shared) std::fill_n(table, vocabulary * width, T(0));
  for (Elements r = 0; r < dy.rows; ++r) {
    add_row(dy.row(r), width, table + tokens[static_cast<std::size_t>(r)] * width);
  }
  pass.progress.gradient_ready(tokens_.tensor);
}

template class Embedding<float>;
template class Embedding<double>;

}  // namespace annulet::nn
