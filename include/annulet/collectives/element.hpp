#pragma once
// What a collective is made of: elements of some size, how two vectors of them become one, and what of them travels.
// With a wire type narrower than the elements, sums are still of whole elements: a rank decodes what comes and adds it.
// It rounds what it sends in place, so that it goes on with the values that its peers get; what a rank has in the end
// without having sent it is rounded by round_through_wire(). So replicas agree to the last bit.
#include <cstddef>
#include <span>
#include <string_view>

#include "annulet/base/units.hpp"

namespace annulet::collectives {

struct WireType {
  std::string_view name;                                             // "bfloat16"
  std::size_t size;                                                  // bytes of an element under way
  void (*encode)(std::byte* wire, std::byte* elements, Elements n);  // elements become what decode() makes of them
  void (*decode)(std::byte* elements, const std::byte* wire, Elements n);
};

struct ElementType {
  std::string_view name;  // "float sum"
  std::size_t size;       // bytes
  // to[i] becomes the reduction of to[i] and from[i], i in [0, n). Commutative; associative up to rounding.
  void (*combine)(std::byte* to, const std::byte* from, Elements n);
  const WireType* wire = nullptr;  // none: elements travel as they are

  std::size_t wire_size() const { return wire != nullptr ? wire->size : size; }
};

// The sum, and the larger one, of float, double or std::int32_t.
template <class T>
const ElementType& sum_of();
template <class T>
const ElementType& maximum_of();

// The upper half of a float, rounded to nearest, to even; NaN stays NaN.
const WireType& bfloat16();

// `element`, a type of floats, travelling as bfloat16.
ElementType over_bfloat16(ElementType element);

// Where there is a wire type: `data` become what they would be had they travelled.
void round_through_wire(const ElementType& element, std::span<std::byte> data);

}  // namespace annulet::collectives
