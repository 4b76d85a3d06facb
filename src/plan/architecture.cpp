#include "annulet/plan/architecture.hpp"

#include "annulet/base/error.hpp"

namespace annulet::plan {
namespace {

// What a decoder's tensors are called; `qkv` empty: queries, keys and values apart.
struct Names {
  std::string block, attention_norm, qkv, out, ffn_norm, up, gate, down;
  std::string final_norm, tokens;
};

const Names kGpt{"h.",       "ln_1",       "attn.c_attn", "attn.c_proj", "ln_2",
                 "mlp.c_fc", "mlp.c_gate", "mlp.c_proj",  "ln_f",        "wte"};
const Names kLlama{
    "model.layers.", "input_layernorm", "",           "self_attn.o_proj",  "post_attention_layernorm", "mlp.up_proj",
    "mlp.gate_proj", "mlp.down_proj",   "model.norm", "model.embed_tokens"};

struct LinearShape {
  Part part;
  Elements inputs, outputs;
  bool bias;
};

// Adds tensors in the order of backward: a bias before its matrix.
class Lister {
 public:
  void linear(const std::string& name, const LinearShape& shape) {
    if (shape.bias) add(name + ".bias", Part::bias, shape.outputs);
    add(name + ".weight", shape.part, shape.inputs * shape.outputs);
  }

  void norm(const std::string& name, Elements width, bool bias) {
    if (bias) add(name + ".bias", Part::norm, width);
    add(name + ".weight", Part::norm, width);
  }

  void add(std::string name, Part part, Elements elements) {
    list_.push_back({std::move(name), part, elements, before_, block_});
    before_ = Before::nothing;
  }

  void before_next(Before products) { before_ = products; }
  void enter_block(Elements block) { block_ = block; }

  std::vector<ModelTensor> take() && { return std::move(list_); }

 private:
  std::vector<ModelTensor> list_;
  Before before_ = Before::nothing;
  Elements block_ = -1;
};

void add_qkv(const Architecture& a, const std::string& block, const Names& names, Lister& list) {
  const Elements queries = a.heads * a.head_width, keys = a.kv_heads * a.head_width;
  const LinearShape shape{Part::attention, a.width, queries + 2 * keys, a.attention_bias};
  if (!names.qkv.empty()) return list.linear(block + names.qkv, shape);
  LinearShape apart = shape;
  apart.outputs = keys;
  list.linear(block + "self_attn.v_proj", apart), list.linear(block + "self_attn.k_proj", apart);
  apart.outputs = queries;
  list.linear(block + "self_attn.q_proj", apart);
}

void add_block(const Architecture& a, Elements layer, const Names& names, Lister& list) {
  const std::string block = names.block + std::to_string(layer) + '.';
  const LinearShape in{Part::ffn, a.width, a.ffn, a.ffn_bias}, out{Part::ffn, a.ffn, a.width, a.ffn_bias};
  list.linear(block + names.down, out);
  list.linear(block + names.up, in);
  if (a.gated) list.linear(block + names.gate, in);
  if (!a.parallel) list.norm(block + names.ffn_norm, a.width, a.norm_bias);
  list.linear(block + names.out, {Part::attention, a.heads * a.head_width, a.width, a.attention_bias});
  list.before_next(Before::attention);
  add_qkv(a, block, names, list);
  list.norm(block + names.attention_norm, a.width, a.norm_bias);
}

std::vector<ModelTensor> decoder_tensors(const Architecture& a) {
  const Names& names = a.positions > 0 ? kGpt : kLlama;
  Lister list;
  if (a.tied) {
    list.before_next(Before::tied_head);
    if (a.head_bias) list.add("lm_head.bias", Part::bias, a.vocabulary);
  } else {
    list.linear("lm_head", {Part::head, a.width, a.vocabulary, a.head_bias});
  }
  list.norm(names.final_norm, a.width, a.norm_bias);
  for (Elements layer = a.layers; layer-- > 0;) {
    list.enter_block(layer);
    add_block(a, layer, names, list);
  }
  list.enter_block(-1);
  if (a.positions > 0) list.add("wpe.weight", Part::positions, a.positions * a.width);
  list.add(names.tokens + ".weight", Part::embedding, a.vocabulary * a.width);
  return std::move(list).take();
}

std::vector<ModelTensor> mlp_tensors(const std::vector<Elements>& widths) {
  ANNULET_EXPECTS(widths.size() >= 2, "an mlp has inputs and outputs");
  Lister list;
  for (std::size_t k = widths.size() - 1; k-- > 0;) {
    list.linear("layers." + std::to_string(k), {Part::ffn, widths[k], widths[k + 1], true});
  }
  return std::move(list).take();
}

Elements& count_of(Parameters& counts, Part part) {
  switch (part) {
    case Part::embedding:
      return counts.embedding;
    case Part::positions:
      return counts.positions;
    case Part::attention:
      return counts.attention;
    case Part::ffn:
      return counts.ffn;
    case Part::norm:
      return counts.norms;
    case Part::bias:
      return counts.biases;
    case Part::head:
      return counts.head;
  }
  throw ContractError("no such part of a model");
}

}  // namespace

std::vector<ModelTensor> tensors(const Architecture& architecture) {
  return architecture.kind == Kind::mlp ? mlp_tensors(architecture.widths) : decoder_tensors(architecture);
}

std::vector<std::size_t> layers(const Architecture& architecture) {
  const auto all = tensors(architecture);
  const auto together = [&](const ModelTensor& a, const ModelTensor& b) {
    if (architecture.kind == Kind::mlp)
      return a.name.substr(0, a.name.rfind('.')) == b.name.substr(0, b.name.rfind('.'));
    return a.block == b.block && !(architecture.tied && b.part == Part::embedding);
  };
  std::vector<std::size_t> layers;
  for (std::size_t t = 0; t < all.size(); ++t) {
    layers.push_back(t == 0 ? 0 : layers.back() + (together(all[t - 1], all[t]) ? 0 : 1));
  }
  return layers;
}

Parameters parameters(const Architecture& architecture) {
  Parameters counts;
  for (const ModelTensor& tensor : tensors(architecture)) count_of(counts, tensor.part) += tensor.elements;
  return counts;
}

std::string to_text(Part part) {
  switch (part) {
    case Part::embedding:
      return "embedding";
    case Part::positions:
      return "positions";
    case Part::attention:
      return "attention";
    case Part::ffn:
      return "FFN";
    case Part::norm:
      return "norms";
    case Part::bias:
      return "biases";
    case Part::head:
      return "head";
  }
  throw ContractError("no such part of a model");
}

}  // namespace annulet::plan
