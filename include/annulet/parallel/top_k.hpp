#pragma once
// Which values of a vector top-k compression sends: the k largest by magnitude, of equal ones those that come first.
// They are found exactly: a sample of the vector gives two bounds, one that a few more than k values reach and one that
// a few less do. Values from the lower bound on are gathered in one pass without branches, and the limit is looked for
// among those between the bounds alone. Where the sample misled, all values are looked at. Some 2 ns a value, half of
// them memory's; the result does not depend on the sample.
#include <cstdint>
#include <span>
#include <type_traits>

#include "annulet/base/aligned.hpp"
#include "annulet/base/units.hpp"

namespace annulet::parallel {

template <class T>
class TopK {
 public:
  // For vectors of up to `most` values, fewer than 2^32: after construction nothing is allocated.
  TopK(Elements most, MemoryAccount& account);

  // Where to: as many values as positions, of which there are no more than values to choose from.
  struct Taken {
    std::span<std::byte> values;         // T each, on any address
    std::span<std::uint32_t> positions;  // ascending, counted from `first`
    std::uint32_t first = 0;
  };

  // Adds `gradient` to `residual` and takes the largest values out, leaving 0 there. What was taken plus the new
  // residual is, bit for bit, the old residual plus the gradient.
  void take(std::span<T> residual, std::span<const T> gradient, const Taken& taken);

 private:
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

  // About k of the values reach them: a few more `low`, a few less `high`.
  struct Bounds {
    Bits low, high;
  };
  // What is taken: everything above the limit, and so many of those that equal it.
  struct Limit {
    Bits magnitude;
    std::size_t ties;
  };

  Bounds sampled_bounds(std::span<const T> residual, std::span<const T> gradient, std::size_t k);
  void gather(std::span<const T> values, std::uint32_t first, Bits low);
  Limit find_limit(std::span<const T> values, Bits high, std::size_t k);
  void emit(std::span<T> residual, Limit limit, const Taken& taken) const;

  AlignedVector<Bits> magnitudes_;           // of a sample, then of the candidates below `high`
  AlignedVector<std::uint32_t> candidates_;  // ascending
  std::size_t count_ = 0;                    // of candidates
};

// Adds taken values to what they were taken from, or to a sum of such; positions count from its beginning. Throws
// RunError for one outside of it.
template <class T>
void add_taken(std::span<T> to, std::span<const std::byte> values, std::span<const std::uint32_t> positions);

}  // namespace annulet::parallel
