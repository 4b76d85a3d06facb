#pragma once
// The models that come with the program, wherever the test runs.
#include <string>

#include "annulet/plan/model_file.hpp"

namespace annulet::plan {

inline Architecture config(const std::string& name) {
  return read_model(ANNULET_SOURCE "/configs/models/" + name + ".toml");
}

// GPT's shape, as in Narayanan et al. 2021: learned positions, all biases, tied.
inline Architecture gpt(Elements layers, Elements width, Elements vocabulary, Elements context) {
  Architecture a;
  a.layers = layers, a.width = width, a.ffn = 4 * width;
  a.heads = a.kv_heads = width / 64, a.head_width = 64;
  a.vocabulary = vocabulary, a.context = a.positions = context;
  a.tied = a.norm_bias = a.attention_bias = a.ffn_bias = true;
  return a;
}

}  // namespace annulet::plan
