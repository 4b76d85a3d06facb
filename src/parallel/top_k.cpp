#include "annulet/parallel/top_k.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "annulet/base/error.hpp"

namespace annulet::parallel {
namespace {

constexpr std::size_t kBlock = 2048;  // values that are added and then looked at, while they are near
constexpr std::size_t kLeastSample = 1024, kMostSample = 4096, kValuesPerSample = 64;
constexpr double kDeviations = 3.5;  // by which the sample may be off

// Magnitudes order as their bits do; a NaN is larger than all numbers.
template <class Bits, class T>
Bits magnitude(T value) {
  return std::bit_cast<Bits>(value) & (std::numeric_limits<Bits>::max() >> 1);
}

// A place in each of equal stretches, not the same one: rows of a matrix are not to be seen in step.
std::size_t place_in_stretch(std::size_t stretch, std::size_t length) {
  constexpr std::uint32_t kGolden = 0x9e3779b9U;
  const auto random = static_cast<std::uint32_t>(stretch + 1) * kGolden;
  return stretch * length + ((random >> 7) % length);
}

}  // namespace

template <class T>
TopK<T>::TopK(Elements most, MemoryAccount& account)
    : magnitudes_(static_cast<std::size_t>(most), account), candidates_(static_cast<std::size_t>(most), account) {
  ANNULET_EXPECTS(most >= 0 && most <= std::numeric_limits<std::uint32_t>::max(), "a position has 32 bits");
}

template <class T>
void TopK<T>::take(std::span<T> residual, std::span<const T> gradient, const Taken& taken) {
  const std::size_t n = residual.size(), k = taken.positions.size();
  ANNULET_EXPECTS(gradient.size() == n && n <= candidates_.size() && k <= n && taken.values.size() == k * sizeof(T),
                  "top-k takes k of n values");
  if (n == 0) return;
  const Bounds bounds = sampled_bounds(residual, gradient, k);
  count_ = 0;
  for (std::size_t first = 0; first < n; first += kBlock) {
    const std::size_t length = std::min(kBlock, n - first);
    T* __restrict to = residual.data() + first;
    const T* __restrict from = gradient.data() + first;
    for (std::size_t i = 0; i < length; ++i) to[i] += from[i];
    gather(residual.subspan(first, length), static_cast<std::uint32_t>(first), bounds.low);
  }
  if (count_ < k) count_ = 0, gather(residual, 0, 0);
  if (k > 0) emit(residual, find_limit(residual, bounds.high, k), taken);
}

template <class T>
auto TopK<T>::sampled_bounds(std::span<const T> residual, std::span<const T> gradient, std::size_t k) -> Bounds {
  constexpr Bits kLargest = std::numeric_limits<Bits>::max();
  const std::size_t n = residual.size(), size = std::clamp(n / kValuesPerSample, kLeastSample, kMostSample);
  if (n < 4 * size) return {0, kLargest};
  const double expected = static_cast<double>(k) * static_cast<double>(size) / static_cast<double>(n);
  const double margin = kDeviations * std::sqrt(expected) + 1;
  if (expected + margin >= static_cast<double>(size)) return {0, kLargest};
  for (std::size_t s = 0; s < size; ++s) {
    const std::size_t i = place_in_stretch(s, n / size);
    magnitudes_[s] = magnitude<Bits>(static_cast<T>(residual[i] + gradient[i]));
  }
  const auto begin = magnitudes_.begin();
  const auto low = begin + static_cast<std::ptrdiff_t>(expected + margin);
  std::nth_element(begin, low, begin + static_cast<std::ptrdiff_t>(size), std::greater<>());
  if (expected <= margin) return {*low, kLargest};
  const auto high = begin + static_cast<std::ptrdiff_t>(expected - margin);
  std::nth_element(begin, high, low, std::greater<>());
  return {*low, *high};
}

template <class T>
void TopK<T>::gather(std::span<const T> values, std::uint32_t first, Bits low) {
  std::uint32_t* to = candidates_.data();
  std::size_t count = count_;
  for (std::size_t i = 0; i < values.size(); ++i) {
    to[count] = first + static_cast<std::uint32_t>(i);
    count += static_cast<std::size_t>(magnitude<Bits>(values[i]) >= low);
  }
  count_ = count;
}

template <class T>
auto TopK<T>::find_limit(std::span<const T> values, Bits high, std::size_t k) -> Limit {
  std::size_t below = 0;
  for (std::size_t c = 0; c < count_; ++c) {
    const Bits bits = magnitude<Bits>(values[candidates_[c]]);
    magnitudes_[below] = bits;
    below += static_cast<std::size_t>(bits < high);
  }
  const std::size_t above = count_ - below;
  if (above >= k) return find_limit(values, std::numeric_limits<Bits>::max(), k);
  const auto begin = magnitudes_.begin(), end = begin + static_cast<std::ptrdiff_t>(k - above);
  std::nth_element(begin, end - 1, begin + static_cast<std::ptrdiff_t>(below), std::greater<>());
  const Bits limit = *(end - 1);
  return {limit, static_cast<std::size_t>(std::count(begin, end, limit))};
}

template <class T>
void TopK<T>::emit(std::span<T> residual, Limit limit, const Taken& taken) const {
  const std::size_t k = taken.positions.size();
  std::size_t out = 0;
  for (std::size_t c = 0; c < count_ && out < k; ++c) {
    T& value = residual[candidates_[c]];
    const Bits bits = magnitude<Bits>(value);
    const bool equal = bits == limit.magnitude;
    const bool takes = bits > limit.magnitude || (equal && limit.ties > 0);
    std::memcpy(taken.values.data() + out * sizeof(T), &value, sizeof(T));
    taken.positions[out] = taken.first + candidates_[c];
    value = takes ? T{0} : value;
    out += static_cast<std::size_t>(takes);
    limit.ties -= static_cast<std::size_t>(takes && equal);
  }
  ANNULET_EXPECTS(out == k, "top-k takes k values");
}

template <class T>
void add_taken(std::span<T> to, std::span<const std::byte> values, std::span<const std::uint32_t> positions) {
  ANNULET_EXPECTS(values.size() == positions.size() * sizeof(T), "every value has its position");
  if (!positions.empty() && std::ranges::max(positions) >= to.size()) {
    throw RunError(
        {fmt::format("a sparse gradient has a value at position {} of {}", std::ranges::max(positions), to.size()),
         "it is not what was sent"});
  }
  for (std::size_t i = 0; i < positions.size(); ++i) {
    T value;
    std::memcpy(&value, values.data() + i * sizeof(T), sizeof(T));
    to[positions[i]] += value;
  }
}

template void add_taken(std::span<float>, std::span<const std::byte>, std::span<const std::uint32_t>);
template void add_taken(std::span<double>, std::span<const std::byte>, std::span<const std::uint32_t>);
template class TopK<float>;
template class TopK<double>;

}  // namespace annulet::parallel
