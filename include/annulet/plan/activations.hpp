#pragma once
// Memory of activations: what forward keeps for backward, for b sequences of s tokens on one device. By block of a
// decoder (Korthikanti et al. 2022, "Reducing Activation Recomputation", section 4.1), in bytes, E of them an element:
//   attention  E s b (h + 2 a Q + 2 g Q) + s b h,  and (2 E + 1) a s^2 b of scores  inputs, Q K V, and dropout's masks
//   FFN        E s b (h + 2 f) + s b h             gated: 4 f instead of 2 f; parallel: 0 instead of h
//   norms      E s b 2 h                           parallel: h
// which for GPT's sizes at 16 bits (E = 2, f = 4 h) is s b h (34 + 5 a s / h). Without dropout: no masks, and E a s^2 b
// of scores. With the attention recomputed, or computed in tiles that keep none (FlashAttention), no scores: 34 s b h.
// With blocks recomputed their inputs are kept, 2 s b h, and one block at a time as above.
// At the ends: E s b 2 h for final norm and head, s b h of dropout, 4 s b V of logits.
#include "annulet/plan/flops.hpp"

namespace annulet::plan {

struct ActivationOptions {
  Elements sequences = 1;    // b: of one micro-batch on one device (an mlp: samples)
  Elements sequence = 0;     // s; 0: the model's context
  Bytes element{2};          // E
  bool dropout = true;       // as the paper
  bool keeps_scores = true;  // false: FlashAttention
  Recomputation recomputation = Recomputation::none;
};

struct Activations {
  Bytes kept{0};     // by all blocks, from forward until their backward
  Bytes working{0};  // of one block while it is recomputed
  Bytes ends{0};     // by what comes before and after the blocks

  Bytes total() const { return kept + working + ends; }
};

// An mlp keeps its inputs, the input and output of every activation, and its outputs: E b (w_0 + 2 (w_1 + ...) + w_K),
// and a mask of each hidden unit with dropout.
Activations activations(const Architecture& architecture, const ActivationOptions& options);

}  // namespace annulet::plan
