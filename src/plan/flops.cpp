#include "annulet/plan/flops.hpp"

#include <numeric>

namespace annulet::plan {
namespace {

bool is_counted(Part part, bool tied, Counted counted) {
  switch (counted) {
    case Counted::all:
      return true;
    case Counted::matrices:
      return part != Part::norm && part != Part::bias;
    case Counted::products:
      return part == Part::attention || part == Part::ffn || part == Part::head || (tied && part == Part::embedding);
  }
  return false;
}

// What forward multiplies a token by in this tensor: 2 operations each.
Flops product(const ModelTensor& tensor, bool tied, Counted counted) {
  return Flops(is_counted(tensor.part, tied, counted) ? 2 * static_cast<double>(tensor.elements) : 0);
}

// Scores and weighted sums of one block, forward: 4 a Q T.
Flops attention_products(const Architecture& a, const FlopsOptions& options) {
  if (!options.attention || a.kind == Kind::mlp) return Flops(0);
  const Elements sequence = options.sequence > 0 ? options.sequence : a.context;
  return Flops(4 * static_cast<double>(a.heads * a.head_width * sequence));
}

// Forward of the blocks, one after the other: the same for each.
Flops block_forward(const Architecture& a, const std::vector<ModelTensor>& list, const FlopsOptions& options) {
  Flops sum = attention_products(a, options);
  for (const ModelTensor& tensor : list) {
    if (tensor.block == 0) sum += product(tensor, a.tied, options.counted);
  }
  return sum;
}

Flops recomputed_in_block(const Architecture& a, const std::vector<ModelTensor>& list, Recomputation recomputation,
                          const FlopsOptions& options) {
  if (a.kind == Kind::mlp || recomputation == Recomputation::none) return Flops(0);
  return recomputation == Recomputation::blocks ? block_forward(a, list, options) : attention_products(a, options);
}

// Backward of the products that a tensor stands for, and of those that come before it.
class BackwardOf {
 public:
  BackwardOf(const Architecture& architecture, const FlopsOptions& options)
      : tied_(architecture.tied && architecture.kind == Kind::decoder),
        counted_(options.counted),
        attention_(attention_products(architecture, options)),
        head_(4 * static_cast<double>(architecture.vocabulary * architecture.width)) {}

  Flops operator()(const ModelTensor& tensor) const {
    Flops flops{0};
    if (tensor.before == Before::attention) flops += attention_ * 2;
    if (tensor.before == Before::tied_head) flops += head_;
    if (tied_ && tensor.part == Part::embedding) return flops;
    return flops + product(tensor, tied_, counted_) * 2;
  }

 private:
  bool tied_;
  Counted counted_;
  Flops attention_, head_;
};

}  // namespace

Flops flops_per_token(Elements parameters, const AttentionShape& attention) {
  const auto& [layers, heads, head_width, sequence] = attention;
  return Flops(6 * static_cast<double>(parameters) +
               12 * static_cast<double>(layers * heads * head_width) * static_cast<double>(sequence));
}

Elements counted_parameters(const Architecture& architecture, Counted counted) {
  Elements sum = 0;
  for (const ModelTensor& tensor : tensors(architecture)) {
    if (is_counted(tensor.part, architecture.tied, counted)) sum += tensor.elements;
  }
  return sum;
}

Flops forward_per_token(const Architecture& architecture, const FlopsOptions& options) {
  const Flops products(2 * static_cast<double>(counted_parameters(architecture, options.counted)));
  return products + attention_products(architecture, options) * static_cast<double>(architecture.layers);
}

Flops flops_per_token(const Architecture& architecture, const FlopsOptions& options) {
  const std::vector<Flops> backward = backward_per_tensor(architecture, Recomputation::none, options);
  return std::accumulate(backward.begin(), backward.end(), forward_per_token(architecture, options));
}

Flops recomputation_per_token(const Architecture& architecture, Recomputation recomputation,
                              const FlopsOptions& options) {
  return recomputed_in_block(architecture, tensors(architecture), recomputation, options) *
         static_cast<double>(architecture.layers);
}

std::vector<Flops> backward_per_tensor(const Architecture& architecture, Recomputation recomputation,
                                       const FlopsOptions& options) {
  const std::vector<ModelTensor> list = tensors(architecture);
  const Flops again = recomputed_in_block(architecture, list, recomputation, options);
  const BackwardOf backward_of(architecture, options);
  std::vector<Flops> backward;
  Elements block = -1;
  for (const ModelTensor& tensor : list) {
    Flops flops = backward_of(tensor);
    const bool enters = tensor.block >= 0 && tensor.block != block;
    block = tensor.block;
    if (recomputation == Recomputation::attention ? tensor.before == Before::attention : enters) flops += again;
    backward.push_back(flops);
  }
  if (architecture.kind == Kind::mlp) backward.back() -= product(list.back(), false, options.counted);
  return backward;
}

}  // namespace annulet::plan
