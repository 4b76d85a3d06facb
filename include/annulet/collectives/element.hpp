#pragma once
// What a collective is made of: elements of some size, and how two vectors of them become one.
#include <cstddef>
#include <string_view>

#include "annulet/base/units.hpp"

namespace annulet::collectives {

struct ElementType {
  std::string_view name;  // "float sum"
  std::size_t size;       // bytes
  // to[i] becomes the reduction of to[i] and from[i], i in [0, n). Commutative; associative up to rounding.
  void (*combine)(std::byte* to, const std::byte* from, Elements n);
};

// The sum of float, double or std::int32_t.
template <class T>
const ElementType& sum_of();

}  // namespace annulet::collectives
