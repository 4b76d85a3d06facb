#include "annulet/base/order_free_sum.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace annulet {
namespace {

constexpr int kDigits = 32;  // of a bin
constexpr int kUsed = 3;     // bins for a number
constexpr std::size_t kBlock = 1024, kLanes = 8;
constexpr int kHighest = OrderFreeSum::kLowest + OrderFreeSum::kBins - 1;

double unit(int bin) { return std::ldexp(1.0, kDigits * bin); }

// The largest number that does not reach the bin above, where it would be rounded to 0.
double largest_of(int bin) { return unit(bin + 1) / 2; }

// NaN if any value is.
double largest(std::span<const double> values) {
  std::array<double, kLanes> most{}, sums{};
  for (std::size_t i = 0; i < values.size(); i += kLanes) {
    for (std::size_t l = 0; l < kLanes; ++l) {
      most[l] = values[i + l] > most[l] ? values[i + l] : most[l];
      sums[l] += values[i + l];
    }
  }
  double result = 0, sum = 0;
  for (const double lane : most) result = std::max(result, lane);
  for (const double lane : sums) sum += lane;
  return std::isnan(sum) ? sum : result;
}

// Takes from each value what it has in the bin; the sum of that in the bin's units, which is exact.
std::int64_t take(std::span<double> values, int bin) {
  const double magic = 1.5 * 0x1p52 * unit(bin);  // where a double's last digit is one unit
  std::array<double, kLanes> sums{};
  for (std::size_t i = 0; i < values.size(); i += kLanes) {
    for (std::size_t l = 0; l < kLanes; ++l) {
      const double rounded = (values[i + l] + magic) - magic;
      sums[l] += rounded;
      values[i + l] -= rounded;
    }
  }
  double sum = 0;
  for (const double lane : sums) sum += lane;
  return static_cast<std::int64_t>(std::ldexp(sum, -kDigits * bin));
}

template <class T, class Function>
void for_each_block(std::span<const T> values, Function add_block) {
  alignas(64) std::array<double, kBlock> block;
  for (std::size_t first = 0; first < values.size(); first += kBlock) {
    const std::size_t count = std::min(kBlock, values.size() - first);
    const std::size_t padded = (count + kLanes - 1) / kLanes * kLanes;
    add_block(values.subspan(first, count), std::span(block).first(padded));
  }
}

template <class T>
void squares(std::span<const T> values, std::span<double> to) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double value = static_cast<double>(values[i]);
    to[i] = value * value;
  }
  std::fill(to.begin() + std::ssize(values), to.end(), 0.0);
}

}  // namespace

// A multiple of the lanes, at most kBlock: 2^10 numbers of 2^31 units at most fit a double's 53 digits.
void OrderFreeSum::add_block(std::span<double> values) {
  const double most = largest(values);
  if (most == 0) return;
  if (!(most <= largest_of(kHighest))) {
    ++words_.back();
    return;
  }
  int bin = kLowest + kUsed - 1;
  while (most > largest_of(bin)) ++bin;
  for (int used = 0; used < kUsed; ++used, --bin) words_[static_cast<std::size_t>(bin - kLowest)] += take(values, bin);
}

void OrderFreeSum::add(std::span<const double> values) {
  for_each_block(values, [this](std::span<const double> part, std::span<double> block) {
    std::fill(std::ranges::copy(part, block.begin()).out, block.end(), 0.0);
    add_block(block);
  });
}

void OrderFreeSum::add_squares(std::span<const float> values) {
  for_each_block(values, [this](std::span<const float> part, std::span<double> block) {
    squares(part, block);
    add_block(block);
  });
}

void OrderFreeSum::add_squares(std::span<const double> values) {
  for_each_block(values, [this](std::span<const double> part, std::span<double> block) {
    squares(part, block);
    add_block(block);
  });
}

double OrderFreeSum::value() const {
  if (words_.back() != 0) return std::numeric_limits<double>::quiet_NaN();
  int bin = kHighest;
  const auto units = [&](int k) { return words_[static_cast<std::size_t>(k - kLowest)]; };
  while (bin > kLowest + kUsed - 1 && units(bin) == 0) --bin;
  double sum = 0;
  for (int k = bin - kUsed + 1; k <= bin; ++k) sum += std::ldexp(static_cast<double>(units(k)), kDigits * k);
  return sum;
}

}  // namespace annulet
