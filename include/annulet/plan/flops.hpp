#pragma once
// Operations of a training step, 2 per multiply-add, for a token (an mlp: a sample). With N parameters:
//   forward 2 N + 4 L a Q T,  backward twice that:  6 N + 12 L a Q T   (PaLM, Chowdhery et al. 2022, appendix B)
// the attention counted whole, not its causal half. What N counts is a convention, `Counted`. An mlp's backward does
// without the gradient of its inputs: 2 w_0 w_1 less. Recomputing activations adds a forward of the blocks, N_b of the
// N: 2 N_b + 4 L a Q T, all in all 8 N_b + 6 (N - N_b) + 16 L a Q T (Narayanan et al. 2021, eq. 3: 96 B s L h^2 (1 +
// s / (6 h) + V / (16 L h))).
#include <vector>

#include "annulet/plan/architecture.hpp"

namespace annulet::plan {

enum class Counted {
  all,       // every parameter
  matrices,  // without norms and biases, an untied embedding included though it is only looked up
  products,  // what a token is multiplied by: without embedding and positions, with the head, tied or not
};

// Which activations backward computes again: none, those inside the attention (its two products), or whole blocks.
enum class Recomputation { none, attention, blocks };

struct FlopsOptions {
  Counted counted = Counted::matrices;
  bool attention = true;  // with the term 12 L a Q T
  Elements sequence = 0;  // T; 0: the model's context
};

struct AttentionShape {
  Elements layers = 0, heads = 0, head_width = 0, sequence = 0;  // L, a, Q, T; all 0: without the term
};

// 6 N + 12 L a Q T for a model of which no more is known.
Flops flops_per_token(Elements parameters, const AttentionShape& attention);

Elements counted_parameters(const Architecture& architecture, Counted counted);

// What a model asks for: the numerator of MFU.
Flops flops_per_token(const Architecture& architecture, const FlopsOptions& options = {});
Flops forward_per_token(const Architecture& architecture, const FlopsOptions& options = {});

// What is done besides; with it, the numerator of HFU.
Flops recomputation_per_token(const Architecture& architecture, Recomputation recomputation,
                              const FlopsOptions& options = {});

// [tensor], in the order of tensors(): what backward does between the gradient before it and its own, its share of
// recomputation included. The attention's products come before the queries', keys' and values' tensor, a tied head's
// before the final norm. The sum is backward's part of the above.
std::vector<Flops> backward_per_tensor(const Architecture& architecture,
                                       Recomputation recomputation = Recomputation::none,
                                       const FlopsOptions& options = {});

}  // namespace annulet::plan
