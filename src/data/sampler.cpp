#include "annulet/data/sampler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "annulet/base/error.hpp"

namespace annulet::data {
namespace {

const SamplerOptions& checked(const SamplerOptions& options) {
  if (options.samples < 1) {
    throw InputError({"there are no samples to draw from", "a step needs at least one", "Check the data set"});
  }
  if (options.batch < 1) {
    throw InputError({fmt::format("a batch of {} samples cannot be drawn", options.batch),
                      "the batch counts the samples of a step over all ranks", "Give a batch of at least 1"});
  }
  return options;
}

}  // namespace

Slice Slice::micro(Elements k, Elements parts) const {
  ANNULET_EXPECTS(0 <= k && k < parts, "a part is one of `parts`");
  const Elements size = std::ssize(indices), share = size / parts, extra = size % parts;
  const Elements first = k * share + std::min(k, extra), count = share + (k < extra ? 1 : 0);
  return {indices.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)), global,
          first_draw + static_cast<std::uint64_t>(first)};
}

Sampler::Sampler(const SamplerOptions& options)
    : options_(checked(options)),
      stream_(options.seed, "sampler.order"),
      order_(static_cast<std::size_t>(options.order == Order::draws ? steps_per_epoch() * options.batch
                                                                    : options.samples)) {
  begin_epoch(0);
}

Elements steps_per_epoch(const SamplerOptions& options) {
  if (options.order == Order::draws) return std::max<Elements>(1, options.samples / options.batch);
  return (options.samples - 1) / options.batch + 1;
}

void Sampler::begin_epoch(Elements epoch) {
  ANNULET_EXPECTS(epoch >= 0, "epochs count from 0");
  epoch_ = epoch;
  const Elements before = options_.order == Order::draws ? epoch * std::ssize(order_) : 0;
  std::iota(order_.begin(), order_.end(), before);
  if (options_.order != Order::shuffled) return;
  const std::uint64_t first_draw = static_cast<std::uint64_t>(epoch) * order_.size();
  for (std::size_t i = order_.size() - 1; i > 0; --i) {
    std::swap(order_[i], order_[stream_.below(first_draw + i, i + 1)]);
  }
}

Slice Sampler::slice(Elements step, Elements rank, Elements world) const {
  ANNULET_EXPECTS(0 <= step && step < steps_per_epoch(), "a step lies in the epoch");
  const Elements first = step * options_.batch, count = std::min(options_.batch, std::ssize(order_) - first);
  const Slice whole{std::span(order_).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)), count,
                    static_cast<std::uint64_t>(epoch_ * std::ssize(order_) + first)};
  return whole.micro(rank, world);
}

Sampler evaluation_sampler(Elements samples, Elements capacity, Elements world) {
  return Sampler({.samples = samples, .batch = capacity * world, .order = Order::sequential});
}

}  // namespace annulet::data
