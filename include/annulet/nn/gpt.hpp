#pragma once
// A decoder-only transformer (GPT-2's shape; Radford et al. 2019): tokens and learned positions, blocks normalised
// before their branches, a final LayerNorm, a head without bias. N = B * T rows, C = width:
//   x_0 = dropout(E[token] + P[t]),  x_{l+1} = block_l(x_l),  logits = LayerNorm(x_L) W_head^T,  loss per token
// Tensors have GPT-2's names and PyTorch's Linear layout [out, in]: `wte.weight` [vocabulary, C], `wpe.weight`
// [context, C], `h.L.ln_1`, `h.L.attn.c_attn` [3 C, C] (queries, keys, values), `h.L.attn.c_proj`, `h.L.ln_2`,
// `h.L.mlp.c_fc`, `h.L.mlp.c_proj`, `ln_f`, and `lm_head.weight` unless it is tied to `wte.weight`. Dropout acts on x_0
// and on what each branch adds, not inside the attention.
#include <cstdint>
#include <memory>

#include "annulet/nn/mlp.hpp"
#include "annulet/nn/model.hpp"

namespace annulet::nn {

struct GptOptions {
  Elements vocabulary = 0;  // V
  Elements context = 64;    // largest T
  Elements layers = 4, heads = 4, width = 128;
  Elements hidden = 0;  // width of the MLPs; 0: 4 * width
  bool bias = true;     // of the Linears in the blocks
  bool tied = true;     // the head's weight is the tokens' embedding
  Activation activation = Activation::gelu;
  double dropout = 0;
  double deviation = 0.02;       // weights start normal with it, biases as 0
  bool scaled_residuals = true;  // those that add to the residual stream with deviation / sqrt(2 layers)
  bool recompute = false;        // keep only the blocks' inputs; compute the rest again in backward, to the same bits
  std::uint64_t seed = 0;        // of the dropout masks
};

// Holds activations of up to `capacity` sequences, for each row about layers * (8 C + 2 hidden) + 3 vocabulary
// elements, or, recomputed, layers * C + 7 C + 2 hidden + 3 vocabulary. Throws InputError for sizes, dropout or a
// capacity out of range.
template <class T>
std::unique_ptr<Model<T>> make_gpt(const GptOptions& options, Elements capacity);

}  // namespace annulet::nn
