#pragma once
// Causal multi-head self-attention (Vaswani et al., arXiv:1706.03762). x [B * T, 3 C] holds queries, keys and values of
// H heads of d = C / H columns each; y [B * T, C]. For each sequence and head
//   S = Q K^T / sqrt(d),  P = softmax over the keys up to the query's own position,  O = P V
// No [T, T] matrix is kept: forward works on the few rows of a register tile, whose scores stay in the first-level
// cache, and keeps two numbers per row and head, the largest score and 1 / sum; backward computes the same P again from
// them, in strips that stay in the second-level cache (FlashAttention, Dao et al., arXiv:2205.14135). Products stop at
// the diagonal.
#include "annulet/base/aligned.hpp"
#include "nn/kernel.hpp"
#include "nn/layer.hpp"

namespace annulet::nn {

struct AttentionOptions {
  Elements heads = 1;
  Elements width = 0;    // C, a multiple of heads
  Elements context = 0;  // largest T
};

// The right operand of products, [depth, columns], in the panels that the register tile wants.
template <class T>
class Panels {
 public:
  Panels() = default;
  Panels(Elements most_depth, Elements most_columns);

  static Elements elements(Elements most_depth, Elements most_columns);  // what it takes

  void pack_rows(Elements depth, Elements columns, Rows<const T> b);       // b (k, j) = b.data[k * b.row + j]
  void pack_transpose(Elements depth, Elements columns, Rows<const T> b);  // b (k, j) = b.data[j * b.row + k]

  Elements columns() const { return columns_; }
  const T* at(Elements row, Elements panel) const { return &data_[index(panel * depth_ + row)]; }

 private:
  T* panel(Elements p) { return &data_[index(p * depth_)]; }
  static std::size_t index(Elements row) { return static_cast<std::size_t>(row * kTileColumns<T>); }

  Elements depth_ = 0, columns_ = 0;
  AlignedVector<T> data_;
};

// What a pass works with and nobody keeps: shared by the layers of a model.
template <class T>
struct AttentionScratch {
  explicit AttentionScratch(const AttentionOptions& options);

  static Elements elements(const AttentionOptions& options);  // what it takes, about 4 C / heads context

  Elements strip_rows;                              // queries whose scores backward holds at once
  Elements strip_row;                               // elements from one row of scores to the next
  Panels<T> keys_transposed, values_transposed;     // [d, T]
  Panels<T> keys, values;                           // [T, d]
  Panels<T> strip_queries, strip_gradients;         // [strip_rows, d]
  AlignedVector<T> probabilities, score_gradients;  // [strip_rows, T]
};

template <class T>
class Attention final : public Layer<T> {
 public:
  // At most `capacity` rows (B * T). `scratch` outlives the layer.
  Attention(const AttentionOptions& options, Elements capacity, AttentionScratch<T>& scratch);

  Elements outputs() const override { return options_.width; }
  void forward(const Pass<T>& pass, Matrix<const T> x, Matrix<T> y) override;
  void backward(const Pass<T>& pass, Matrix<const T> x, Matrix<const T> y, Matrix<const T> dy, Matrix<T> dx) override;

 private:
  // What makes P of a row of scores: exp(S - most) * inverse_sum.
  struct Softmax {
    T most, inverse_sum;
  };

  // One head of one sequence: views into x, y and their gradients, all [T, d].
  struct Head {
    Rows<const T> q, k, v, y, dy;
    Rows<T> out, dq, dk, dv;
    Softmax* softmax;  // [T]
    Elements time;
  };

  Head head(Elements sequence, Elements h, Elements time, Matrix<const T> x);
  void forward(const Head& head);
  void backward(const Head& head);
  void scores(const Rows<const T>& rows, Shape tile, const Panels<T>& panels, T* to) const;
  void recompute_strip(const Head& head, Elements first, Elements end);
  void add_strip(const Head& head, Elements first, Elements end) const;

  AttentionOptions options_;
  Elements depth_;  // d
  T scale_;         // 1 / sqrt(d)
  AttentionScratch<T>& scratch_;
  AlignedVector<Softmax> softmax_;  // [B, H, T], of the last forward pass
};

}  // namespace annulet::nn
