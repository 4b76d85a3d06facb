// Sums of squares whose bits depend on the values only. A granule of 64 elements has eight lanes: lane l adds up
// elements l, l + 8, ... in order, the lanes are added in a fixed tree, and granules are added in order. Cutting a
// vector at multiples of 64 and continuing from `start` repeats exactly the same additions.
#include <array>
#include <cstddef>

#include "annulet/nn/optimizer.hpp"

namespace annulet::nn {
namespace {

constexpr std::size_t kGranule = 64;
constexpr std::size_t kLanes = 8;

template <class T>
double squares_of_granule(const T* values) {
  std::array<double, kLanes> lanes{};
  for (std::size_t i = 0; i < kGranule; i += kLanes) {
    for (std::size_t l = 0; l < kLanes; ++l) {
      const double value = static_cast<double>(values[i + l]);
      lanes[l] += value * value;
    }
  }
  for (std::size_t half = kLanes / 2; half > 0; half /= 2) {
    for (std::size_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  }
  return lanes[0];
}

}  // namespace

template <class T>
double squared_norm(std::span<const T> values, double start) {
  double sum = start;
  const std::size_t whole = values.size() / kGranule * kGranule;
  for (std::size_t i = 0; i < whole; i += kGranule) sum += squares_of_granule(values.data() + i);
  if (whole == values.size()) return sum;
  std::array<T, kGranule> padded{};
  for (std::size_t i = whole; i < values.size(); ++i) padded[i - whole] = values[i];
  return sum + squares_of_granule(padded.data());
}

template double squared_norm<float>(std::span<const float>, double);
template double squared_norm<double>(std::span<const double>, double);

}  // namespace annulet::nn
