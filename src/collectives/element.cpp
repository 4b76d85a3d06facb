#include "annulet/collectives/element.hpp"

#include <cstdint>

namespace annulet::collectives {
namespace {

template <class T>
void add(std::byte* to, const std::byte* from, Elements n) {
  T* __restrict a = reinterpret_cast<T*>(to);
  const T* __restrict b = reinterpret_cast<const T*>(from);
  for (Elements i = 0; i < n; ++i) a[i] += b[i];
}

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

}  // namespace annulet::collectives
