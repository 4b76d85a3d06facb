#include "annulet/train/continuation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "annulet/base/error.hpp"

namespace annulet::train {
namespace {

void check(const ContinuationOptions& options, std::span<const std::int32_t> prompt) {
  if (prompt.empty()) {
    throw InputError(
        {"an empty prompt cannot be continued", "the model foretells what follows a token", "Give a byte"});
  }
  if (!(std::isfinite(options.temperature) && options.temperature >= 0)) {
    throw InputError({fmt::format("a temperature of {} is out of range", options.temperature),
                      "logits are divided by it", "Choose 0 (always the most probable) or more, such as 0.8"});
  }
  if (options.context < 1) {
    throw InputError({fmt::format("a context of {} tokens holds no text", options.context), "", "Give the model's"});
  }
  if (options.top_k < 0) {
    throw InputError(
        {fmt::format("top-k = {} is out of range", options.top_k), "", "Choose 0 for all tokens, or more"});
  }
}

}  // namespace

template <class T>
std::int32_t draw_token(std::span<const T> logits, double temperature, Elements top_k, double uniform) {
  std::vector<std::int32_t> tokens(logits.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  const auto logit = [&](std::int32_t token) { return static_cast<double>(logits[static_cast<std::size_t>(token)]); };
  std::stable_sort(tokens.begin(), tokens.end(), [&](auto a, auto b) { return logit(a) > logit(b); });
  if (temperature == 0) return tokens.front();
  if (top_k > 0 && top_k < std::ssize(tokens)) tokens.resize(static_cast<std::size_t>(top_k));
  std::vector<double> cumulative;
  double sum = 0;
  for (const std::int32_t token : tokens) {
    sum += std::exp((logit(token) - logit(tokens.front())) / temperature);
    cumulative.push_back(sum);
  }
  const auto place = std::upper_bound(cumulative.begin(), cumulative.end() - 1, uniform * sum) - cumulative.begin();
  return tokens[static_cast<std::size_t>(place)];
}

template <class T>
Continuation<T>::Continuation(nn::Model<T>& model, std::span<const T> weights, const ContinuationOptions& options,
                              std::vector<std::int32_t> prompt)
    : model_(model),
      weights_(weights),
      options_(options),
      stream_(options.seed, "continuation"),
      tokens_(std::move(prompt)) {
  check(options, tokens_);
}

template <class T>
std::int32_t Continuation<T>::next() {
  const auto context = static_cast<std::size_t>(options_.context);
  if (tokens_.size() > context) tokens_.erase(tokens_.begin(), tokens_.end() - options_.context);
  nn::Progress quiet;
  const nn::Batch<T> batch{.samples = 1, .features = {}, .tokens = tokens_};
  model_.forward(batch, weights_, nn::Mode::evaluate, quiet);
  const std::span<const T> all = model_.outputs();
  const std::span<const T> row = all.last(all.size() / tokens_.size());
  const auto known = options_.vocabulary > 0 ? static_cast<std::size_t>(options_.vocabulary) : row.size();
  const std::span<const T> logits = row.first(std::min(known, row.size()));
  if (!std::all_of(logits.begin(), logits.end(), [](T v) { return std::isfinite(v); })) {
    throw RunError({"the model's outputs are not finite", "there is nothing to draw from", "Train it anew"});
  }
  const std::int32_t token = draw_token(logits, options_.temperature, options_.top_k, stream_.uniform(drawn_++));
  tokens_.push_back(token);
  return token;
}

template std::int32_t draw_token<float>(std::span<const float>, double, Elements, double);
template std::int32_t draw_token<double>(std::span<const double>, double, Elements, double);
template class Continuation<float>;
template class Continuation<double>;

}  // namespace annulet::train
