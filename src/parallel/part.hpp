#pragma once
// The elements of an interval.
#include <span>

#include "annulet/schedule/chunks.hpp"

namespace annulet::parallel {

template <class T>
std::span<T> part(std::span<T> values, schedule::Interval interval) {
  return values.subspan(static_cast<std::size_t>(interval.first), static_cast<std::size_t>(interval.count));
}

}  // namespace annulet::parallel
