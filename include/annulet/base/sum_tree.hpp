#pragma once
// The one binary tree in which a reproducible sum of n terms is added up: the sum of the first m and of the rest, m the
// largest power of two below n. Its shape depends on n alone, and so does the order of the additions in any subtree.
#include <bit>

#include "annulet/base/error.hpp"
#include "annulet/base/units.hpp"

namespace annulet {

// m, as above; n > 1.
inline Elements first_half(Elements n) {
  ANNULET_EXPECTS(n > 1, "one term has no halves");
  return static_cast<Elements>(std::bit_floor(static_cast<std::uint64_t>(n - 1)));
}

// Most terms of such a sum: micro-shards of a batch.
constexpr Elements kMostMicroShards = 64;

}  // namespace annulet
