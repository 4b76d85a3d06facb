#include "nn/embedding.hpp"

#include <algorithm>

#include "annulet/base/error.hpp"
#include "nn/product.hpp"

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
void Embedding<T>::backward(const Pass<T>& pass, std::span<const std::int32_t> tokens, Matrix<const T> dy,
                            const SharedHead<T>& head) const {
  const auto [vocabulary, context, width, initial, shared] = options_;
  pass.progress.gradient_begins(positions_.tensor);
  const auto by_position = [&](Elements row, Elements rows, T* to, Accumulate how) {
    if (how == Accumulate::overwrite) std::fill_n(to, options_.context * options_.width, T(0));
    for (Elements r = row; r < row + rows; ++r) add_row(dy.row(r), dy.columns, to + r % pass.time * dy.columns);
  };
  pass.sum_over_rows(dy.rows, context * width, pass.gradient(positions_), by_position);
  pass.progress.gradient_ready(positions_.tensor);

  pass.progress.gradient_begins(tokens_.tensor);
  const auto by_token = [&](Elements row, Elements rows, T* to, Accumulate how) {
    begin_token_gradients(pass, {row, rows}, head, to, how);
    for (Elements r = row; r < row + rows; ++r) {
      add_row(dy.row(r), dy.columns, to + tokens[static_cast<std::size_t>(r)] * dy.columns);
    }
  };
  pass.sum_over_rows(dy.rows, vocabulary * width, pass.gradient(tokens_), by_token);
  pass.progress.gradient_ready(tokens_.tensor);
}

// What the embedding's own part of some rows is added to.
template <class T>
void Embedding<T>::begin_token_gradients(const Pass<T>& pass, Rows rows, const SharedHead<T>& head, T* to,
                                         Accumulate how) const {
  const auto [vocabulary, context, width, initial, shared] = options_;
  if (!head.normed.empty()) {
    const Matrix<const T> d_logits(head.d_logits.row(rows.first), rows.count, vocabulary);
    const Matrix<const T> normed(head.normed.row(rows.first), rows.count, width);
    multiply_outer(d_logits, normed, Matrix<T>(to, vocabulary, width), MicroShards{std::span(&rows.count, 1)},
                   pass.progress);
  } else if (how == Accumulate::overwrite && !(shared && pass.micro_shards.empty())) {
    std::fill_n(to, vocabulary * width, T(0));
  }
}

template class Embedding<float>;
template class Embedding<double>;

}  // namespace annulet::nn
