#include "annulet/base/order_free_sum.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

namespace annulet {
namespace {

constexpr int kDigits = 32;  // of a bin
constexpr int kUsed = 3;     // bins for a number
constexpr int kHighest = OrderFreeSum::kLowest + OrderFreeSum::kBins - 1;
constexpr std::size_t kBlock = 1024, kLanes = 8;

double unit(int bin) { return std::ldexp(1.0, kDigits * bin); }

// The largest number that does not reach the bin above, where it would be rounded to 0.
double largest_of(int bin) { return unit(bin + 1) / 2; }

struct Itself {
  static double of(double value) { return value; }
};

struct Square {
  static double of(double value) { return value * value; }
};

// By the bits without the sign, which are ordered as the numbers are; a NaN is larger than all.
template <class T>
double largest_magnitude(std::span<const T> values) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  constexpr Bits magnitude = std::numeric_limits<Bits>::max() / 2;
  Bits most = 0;
  for (const T value : values) most = std::max(most, std::bit_cast<Bits>(value) & magnitude);
  return static_cast<double>(std::bit_cast<T>(most));
}

// What the values have in a bin and in the two below, in the bins' units. Adding `magic`, where a double's last digit
// is one unit, rounds to whole units; and 2^10 numbers of at most 2^31 units have a sum within the 53 digits of a
// double.
struct Taken {
  std::array<std::int64_t, kUsed> units;
};

template <class Of, class T>
Taken take(std::span<const T> values, int bin) {
  const auto magic = [&](int k) { return 1.5 * 0x1p52 * unit(k); };
  const double magic0 = magic(bin), magic1 = magic(bin - 1), magic2 = magic(bin - 2);
  std::array<double, kLanes> sums0{}, sums1{}, sums2{};
  for (std::size_t i = 0; i < values.size(); i += kLanes) {
    for (std::size_t l = 0; l < kLanes; ++l) {
      double rest = Of::of(static_cast<double>(values[i + l]));
      const double rounded0 = (rest + magic0) - magic0;
      sums0[l] += rounded0, rest -= rounded0;
      const double rounded1 = (rest + magic1) - magic1;
      sums1[l] += rounded1, rest -= rounded1;
      sums2[l] += (rest + magic2) - magic2;
    }
  }
  const auto units = [](const std::array<double, kLanes>& sums, int k) {
    double sum = 0;
    for (const double lane : sums) sum += lane;
    return static_cast<std::int64_t>(std::ldexp(sum, -kDigits * k));
  };
  return {{units(sums0, bin), units(sums1, bin - 1), units(sums2, bin - 2)}};
}

// A multiple of the lanes, at most kBlock.
template <class Of, class T>
void add_block(std::span<const T> values, std::span<std::int64_t> words) {
  const double most = Of::of(largest_magnitude(values));
  if (most == 0) return;
  if (!(most <= largest_of(kHighest))) {
    ++words.back();
    return;
  }
  int bin = OrderFreeSum::kLowest + kUsed - 1;
  while (most > largest_of(bin)) ++bin;
  const Taken taken = take<Of>(values, bin);
  for (const std::int64_t units : taken.units) words[static_cast<std::size_t>(bin-- - OrderFreeSum::kLowest)] += units;
}

template <class Of, class T>
void add_blocks(std::span<const T> values, std::span<std::int64_t> words) {
  const std::size_t whole = values.size() / kLanes * kLanes;
  for (std::size_t first = 0; first < whole; first += kBlock) {
    add_block<Of>(values.subspan(first, std::min(kBlock, whole - first)), words);
  }
  if (whole == values.size()) return;
  std::array<T, kLanes> padded{};
  std::ranges::copy(values.subspan(whole), padded.begin());
  add_block<Of>(std::span<const T>(padded), words);
}

}  // namespace

void OrderFreeSum::add(std::span<const double> values) { add_blocks<Itself>(values, words_); }

void OrderFreeSum::add_squares(std::span<const float> values) { add_blocks<Square>(values, words_); }

void OrderFreeSum::add_squares(std::span<const double> values) { add_blocks<Square>(values, words_); }

double OrderFreeSum::value() const {
  if (words_.back() != 0) return std::numeric_limits<double>::quiet_NaN();
  const auto units = [&](int k) { return words_[static_cast<std::size_t>(k - kLowest)]; };
  int bin = kHighest;
  while (bin > kLowest + kUsed - 1 && units(bin) == 0) --bin;
  double sum = 0;
  for (int k = bin - kUsed + 1; k <= bin; ++k) sum += std::ldexp(static_cast<double>(units(k)), kDigits * k);
  return sum;
}

}  // namespace annulet
