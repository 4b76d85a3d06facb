#pragma once
// Sums of numbers that are not negative, to the same bits in whatever order and grouping they are added: so a norm does
// not depend on how a vector is cut into buckets, chunks and shards. By bins of 32 binary digits (Demmel & Nguyen,
// "Fast reproducible floating-point summation", ARITH 2013): a number is rounded to a multiple of 2^(32 k), the rest to
// a multiple of 2^(32 (k - 1)), and the rest once more; bins add up integers. Of all bins the highest three that are
// used are the sum, which is therefore as exact as a double. Merging two sums is adding integers: any all-reduce may do
// it. Room for 2^31 numbers; a number above 2^287, an infinity or a NaN makes the sum a NaN.
#include <array>
#include <cstdint>
#include <span>

namespace annulet {

class OrderFreeSum {
 public:
  static constexpr int kLowest = -10, kBins = 19;  // bin k, from kLowest upwards: multiples of 2^(32 k)

  void add(std::span<const double> values);

  // The squares of the values.
  void add_squares(std::span<const float> values);
  void add_squares(std::span<const double> values);

  // NaN if there was something that is not finite.
  double value() const;

  // What two sums are added up by, word by word: the bins, and how often something was not finite.
  std::span<std::int64_t> words() { return words_; }
  std::span<const std::int64_t> words() const { return words_; }

 private:
  std::array<std::int64_t, std::size_t{kBins} + 1> words_{};
};

}  // namespace annulet
