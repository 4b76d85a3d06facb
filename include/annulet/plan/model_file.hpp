#pragma once
// Models as files: configs/models/*.toml, and the config.json of Hugging Face's Llama, Mistral and GPT-2 families.
//   layers, width, heads, ffn   whole numbers; kv_heads (else as heads), head_width (else width / heads)
//   gated, tied                 true or false; parallel (else false)
//   vocabulary, context         whole numbers
//   positions                   "learned" (context of them), "rotary" or "none"
//   norm                        "layer" or "rms"; norm_bias (else true for layer, false for rms)
//   bias                        of the attention's and FFN's matrices (else false), or apart: attention_bias, ffn_bias;
//                               head_bias (else false)
//   source                      where the sizes come from; optional
//   kind = "mlp", widths = [784, 1024, 10]   and nothing else but source
#include <string>
#include <string_view>

#include "annulet/plan/architecture.hpp"

namespace annulet::plan {

// A file (.toml, .json), a folder with a config.json, or the name of a file in configs/models. Throws InputError naming
// the file, line and field, also for a field of a config.json that may change the model and is not accounted for.
Architecture read_model(const std::string& name);

// `name` stands for the file in messages. The architecture is called as the file is, config.json as its folder.
Architecture parse_model(std::string_view text, const std::string& name);
Architecture parse_hugging_face(std::string_view text, const std::string& name);

}  // namespace annulet::plan
