#pragma once
// Embedding of tokens with learned positions: y[b, t] = E[token[b, t]] + P[t], E [vocabulary, width] (`wte.weight`),
// P [context, width] (`wpe.weight`). Gradients are summed in the order of the rows.
#include "nn/layer.hpp"

namespace annulet::nn {

struct EmbeddingOptions {
  Elements vocabulary = 0, context = 0, width = 0;
  Initial initial;
  bool shared = false;  // E is the head's weight too (tied): its gradient already holds the head's part, or will
};

// What the gradient of a shared E holds besides: that of the head, d_logits^T normed. Empty if it is there already.
template <class T>
struct SharedHead {
  Matrix<const T> d_logits{};  // [B * time, vocabulary]
  Matrix<const T> normed{};    // [B * time, width]
};

template <class T>
class Embedding {
 public:
  explicit Embedding(const EmbeddingOptions& options) : options_(options) {}

  std::vector<Tensor> tensors() const;  // wpe.weight, then wte.weight: as backward finishes them
  void bind(const Layout& layout);

  // tokens [B, time], each in [0, vocabulary), time = pass.time <= context; y, dy [B * time, width]
  void forward(const Pass<T>& pass, std::span<const std::int32_t> tokens, Matrix<T> y) const;
  void backward(const Pass<T>& pass, std::span<const std::int32_t> tokens, Matrix<const T> dy,
                const SharedHead<T>& head = {}) const;

 private:
  struct Rows {
    Elements first, count;
  };
  void begin_token_gradients(const Pass<T>& pass, Rows rows, const SharedHead<T>& head, T* to, Accumulate how) const;

  EmbeddingOptions options_;
  TensorPlace tokens_, positions_;
};

}  // namespace annulet::nn
