#pragma once
// Embedding of tokens with learned positions: y[b, t] = E[token[b, t]] + P[t], E [vocabulary, width] (`wte.weight`),
// P [context, width] (`wpe.weight`). Gradients are summed in the order of the rows.
#include "nn/layer.hpp"

namespace annulet::nn {

struct EmbeddingOptions {
  Elements vocabulary = 0, context = 0, width = 0;
  Initial initial;
  bool shared = false;  // E is the head's weight too (tied): its gradient already holds the head's part
};

template <class T>
class Embedding {
 public:
  explicit Embedding(const EmbeddingOptions& options) : options_(options) {}

  std::vector<Tensor> tensors() const;  // wpe.weight, then wte.weight: as backward finishes them
  void bind(const Layout& layout);

  // tokens [B, time], each in [0, vocabulary), time = pass.time <= context; y, dy [B * time, width]
  void forward(const Pass<T>& pass, std::span<const std::int32_t> tokens, Matrix<T> y) const;
  void backward(const Pass<T>& pass, std::span<const std::int32_t> tokens, Matrix<const T> dy) const;

 private:
  EmbeddingOptions options_;
  TensorPlace tokens_, positions_;
};

}  // namespace annulet::nn
