#pragma once
// A transformer block, normalised before its branches (pre-LN; Xiong et al., arXiv:2002.04745). x, y [N, C], N = B * T:
//   z = x + dropout(Linear(attention(Linear(LayerNorm(x)))))
//   y = z + dropout(Linear(gelu(Linear(LayerNorm(z)))))
// What backward needs lies in a BlockMemory, about (7 C + 2 hidden) N elements: one for each block, or one for all of
// them if it is computed again before each block's backward.
#include <string>

#include "nn/activation.hpp"
#include "nn/attention.hpp"
#include "nn/dropout.hpp"
#include "nn/layer_norm.hpp"
#include "nn/linear.hpp"

namespace annulet::nn {

struct BlockOptions {
  std::string name;  // of the tensors: "h.0"
  AttentionOptions attention;
  Elements hidden = 0;  // width of the MLP
  bool bias = true;     // of the Linears
  Activation activation = Activation::gelu;
  double dropout = 0;
  std::uint64_t seed = 0;
  Initial weight, residual;  // of the Linears; of those that add to the residual stream
};

template <class T>
struct BlockMemory {
  BlockMemory(const BlockOptions& options, Elements rows);

  AlignedVector<T> normed, qkv, heads, middle, middle_normed, hidden, activated;
  AlignedVector<T> attention_mask, mlp_mask;  // empty without dropout
};

// What no pass leaves behind: shared by all blocks.
template <class T>
struct BlockScratch {
  BlockScratch(const BlockOptions& options, Elements rows);

  AlignedVector<T> branch, dropped;               // [N, C]
  AlignedVector<T> d_branch, d_normed, d_hidden;  // [N, C], [N, C], [N, hidden]
  AlignedVector<T> d_heads, d_qkv;                // [N, C], [N, 3 C]
  AttentionScratch<T> attention;
};

template <class T>
class Block {
 public:
  // At most `rows` rows; memory and scratch outlive the block.
  Block(const BlockOptions& options, Elements rows, BlockMemory<T>& memory, BlockScratch<T>& scratch);

  std::vector<Tensor> tensors() const;
  void bind(const Layout& layout);

  void forward(const Pass<T>& pass, Matrix<const T> x, Matrix<T> y);

  // Fills the memory again, as forward did, without y.
  void recompute(const Pass<T>& pass, Matrix<const T> x);

  // d: the gradient of y, which becomes that of x.
  void backward(const Pass<T>& pass, Matrix<const T> x, Matrix<T> d);

 private:
  Matrix<T> view(AlignedVector<T>& values, Elements rows, Elements columns) const {
    return {values.data(), rows, columns};
  }
  void fill_memory(const Pass<T>& pass, Matrix<const T> x);
  void add_branch(const Pass<T>& pass, Dropout<T>* dropout, Matrix<const T> x, Matrix<T> y);
  Matrix<const T> through_dropout(const Pass<T>& pass, Dropout<T>* dropout, Matrix<const T> d);
  void attention_backward(const Pass<T>& pass, Matrix<const T> x, Matrix<T> d);
  void mlp_backward(const Pass<T>& pass, Matrix<T> d);

  Elements width_, hidden_width_;
  LayerNorm<T> attention_norm_, mlp_norm_;
  Linear<T> qkv_, attention_out_, mlp_in_, mlp_out_;
  Attention<T> attention_;
  ActivationLayer<T> activation_;
  std::unique_ptr<Dropout<T>> attention_dropout_, mlp_dropout_;  // null without dropout
  BlockMemory<T>& memory_;
  BlockScratch<T>& scratch_;
};

}  // namespace annulet::nn
