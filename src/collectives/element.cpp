#include "annulet/collectives/element.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "annulet/base/error.hpp"

namespace annulet::collectives {
namespace {

template <class T>
void add(std::byte* to, const std::byte* from, Elements n) {
  T* __restrict a = reinterpret_cast<T*>(to);
  const T* __restrict b = reinterpret_cast<const T*>(from);
  for (Elements i = 0; i < n; ++i) a[i] += b[i];
}

template <class T>
void keep_larger(std::byte* to, const std::byte* from, Elements n) {
  T* __restrict a = reinterpret_cast<T*>(to);
  const T* __restrict b = reinterpret_cast<const T*>(from);
  for (Elements i = 0; i < n; ++i) a[i] = a[i] < b[i] ? b[i] : a[i];
}

std::uint32_t rounded(std::uint32_t bits) {
  const bool is_nan = (bits & 0x7fffffffU) > 0x7f800000U;  // rounding could make it an infinity
  return is_nan ? bits | 0x00400000U : bits + 0x7fffU + ((bits >> 16) & 1U);
}

void encode_bfloat16(std::byte* wire, std::byte* elements, Elements n) {
  auto* __restrict narrow = reinterpret_cast<std::uint16_t*>(wire);
  auto* __restrict wide = reinterpret_cast<float*>(elements);
  for (Elements i = 0; i < n; ++i) {
    const std::uint32_t bits = rounded(std::bit_cast<std::uint32_t>(wide[i])) & 0xffff0000U;
    narrow[i] = static_cast<std::uint16_t>(bits >> 16);
    wide[i] = std::bit_cast<float>(bits);
  }
}

void decode_bfloat16(std::byte* elements, const std::byte* wire, Elements n) {
  auto* __restrict wide = reinterpret_cast<float*>(elements);
  const auto* __restrict narrow = reinterpret_cast<const std::uint16_t*>(wire);
  for (Elements i = 0; i < n; ++i) wide[i] = std::bit_cast<float>(std::uint32_t{narrow[i]} << 16);
}

constexpr WireType kBfloat16{"bfloat16", sizeof(std::uint16_t), encode_bfloat16, decode_bfloat16};

}  // namespace

template <>
const ElementType& sum_of<float>() {
  static constexpr ElementType type{"float sum", sizeof(float), add<float>};
  return type;
}

template <>
const ElementType& sum_of<double>() {
  static constexpr ElementType type{"double sum", sizeof(double), add<double>};
  return type;
}

template <>
const ElementType& sum_of<std::int32_t>() {
  static constexpr ElementType type{"int32 sum", sizeof(std::int32_t), add<std::int32_t>};
  return type;
}

template <>
const ElementType& maximum_of<float>() {
  static constexpr ElementType type{"float maximum", sizeof(float), keep_larger<float>};
  return type;
}

template <>
const ElementType& maximum_of<double>() {
  static constexpr ElementType type{"double maximum", sizeof(double), keep_larger<double>};
  return type;
}

template <>
const ElementType& maximum_of<std::int32_t>() {
  static constexpr ElementType type{"int32 maximum", sizeof(std::int32_t), keep_larger<std::int32_t>};
  return type;
}

const WireType& bfloat16() { return kBfloat16; }

ElementType over_bfloat16(ElementType element) {
  ANNULET_EXPECTS(element.size == sizeof(float), "bfloat16 is half of a float");
  element.wire = &kBfloat16;
  return element;
}

void round_through_wire(const ElementType& element, std::span<std::byte> data) {
  if (element.wire == nullptr) return;
  constexpr std::size_t kPart = 1024;
  alignas(std::uint32_t) std::array<std::byte, kPart * sizeof(std::uint32_t)> wire;
  for (std::size_t first = 0, count = data.size() / element.size; first < count; first += kPart) {
    const auto part = static_cast<Elements>(std::min(kPart, count - first));
    element.wire->encode(wire.data(), data.data() + first * element.size, part);
  }
}

}  // namespace annulet::collectives
