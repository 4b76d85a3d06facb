#pragma once
// Text that a language model goes on with, token by token: the last `context` tokens go through the model, the logits
// of the last one, divided by the temperature, say how probable each next token is, and one is drawn.
#include <span>
#include <vector>

#include "annulet/base/random.hpp"
#include "annulet/nn/model.hpp"

namespace annulet::train {

struct ContinuationOptions {
  Elements context = 64;    // of the model
  Elements vocabulary = 0;  // draw among the first so many tokens; 0: all
  double temperature = 1;   // 0: always the most probable token
  Elements top_k = 0;       // only among so many most probable ones; 0: all
  std::uint64_t seed = 1;
};

template <class T>
class Continuation {
 public:
  // `model` and `weights` outlive it. Throws InputError for an empty prompt, or options out of range.
  Continuation(nn::Model<T>& model, std::span<const T> weights, const ContinuationOptions& options,
               std::vector<std::int32_t> prompt);

  std::int32_t next();

 private:
  nn::Model<T>& model_;
  std::span<const T> weights_;
  ContinuationOptions options_;
  RandomStream stream_;
  std::vector<std::int32_t> tokens_;  // the last `context` ones
  std::uint64_t drawn_ = 0;
};

// The token that `uniform` in [0, 1) falls on. `logits` are finite.
template <class T>
std::int32_t draw_token(std::span<const T> logits, double temperature, Elements top_k, double uniform);

}  // namespace annulet::train
