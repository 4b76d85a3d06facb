#pragma once
// A model as the planner knows it: the sizes that decide its parameters. Its tensors are derived from them, and counts
// are sums over the tensors, so that a total and its parts cannot disagree. Per block of a decoder, with width h, heads
// a of Q columns, keys and values of g heads, an FFN of f columns:
//   attention 2 h a Q + 2 h g Q,  FFN 2 h f (3 h f gated),  norms 2 h (4 h with biases; half if parallel)
// and once: embedding V h, learned positions s h, head V h unless tied, a final norm. For g Q = h, f = 4 h, all biases,
// tied: 12 L h^2 (1 + 13 / (12 h) + (V + s) / (12 L h)) (Narayanan et al. 2021, eq. 2) + 2 h of the final norm.
#include <string>
#include <vector>

#include "annulet/base/units.hpp"

namespace annulet::plan {

enum class Kind { decoder, mlp };
enum class Norm { rms, layer };

struct Architecture {
  std::string name{}, source{};
  Kind kind = Kind::decoder;

  Elements layers = 0, width = 0;                    // L, h
  Elements heads = 0, kv_heads = 0, head_width = 0;  // a, g, Q; kv_heads < heads: grouped queries
  Elements ffn = 0;                                  // f
  bool gated = false;                                // SwiGLU and the like: three FFN matrices instead of two
  bool parallel = false;                             // attention and FFN side by side, after one norm
  Elements vocabulary = 0;                           // V
  Elements context = 0;                              // T: tokens of a sequence
  Elements positions = 0;                            // learned ones; 0: rotary, or none
  bool tied = false;                                 // the head's matrix is the token embedding
  Norm norm = Norm::layer;
  bool norm_bias = false, attention_bias = false, ffn_bias = false, head_bias = false;

  std::vector<Elements> widths{};  // of an mlp and of nothing else: inputs, hidden layers, outputs; all with biases
};

enum class Part { embedding, positions, attention, ffn, norm, bias, head };

// Products without a tensor of their own that backward does before it reaches a tensor's.
enum class Before { nothing, attention, tied_head };

struct ModelTensor {
  std::string name;
  Part part;
  Elements elements;
  Before before = Before::nothing;
  Elements block = -1;  // which of a decoder's blocks it belongs to, from 0; -1: none
};

// In the order in which backward finishes their gradients. Names and grouping are GPT-2's, as in nn/gpt.hpp (queries,
// keys and values in one tensor), with learned positions, and Llama's without; an mlp's are as in nn/mlp.hpp.
std::vector<ModelTensor> tensors(const Architecture& architecture);

// [tensor] its layer, as nn::Tensor has it: tensors that are used together, counted from the output; a tied embedding
// is one of its own.
std::vector<std::size_t> layers(const Architecture& architecture);

// An mlp's matrices count as ffn.
struct Parameters {
  Elements embedding = 0, positions = 0, attention = 0, ffn = 0, norms = 0, biases = 0, head = 0;

  Elements matrices() const { return embedding + positions + attention + ffn + head; }
  Elements total() const { return matrices() + norms + biases; }
};

Parameters parameters(const Architecture& architecture);

std::string to_text(Part part);  // "embedding"

}  // namespace annulet::plan
