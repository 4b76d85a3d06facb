#pragma once
// Elementary functions on Eigen's packets, within a few units in the last place; a NaN comes out as a NaN, which
// Eigen's own functions do not promise. And the loops that apply them: an element's bits do not depend on its place,
// since a last, partial packet is filled up and goes the same way.
#include <unsupported/Eigen/SpecialFunctions>

#include <algorithm>
#include <array>
#include <cmath>

#include "nn/kernel.hpp"

namespace annulet::nn {

template <class T>
Packet<T> splat(T value) {
  return Eigen::internal::pset1<Packet<T>>(value);
}

namespace detail {

template <class T, class Function>
Packet<T> lane_by_lane(Packet<T> x, Function function) {
  alignas(64) std::array<T, kLanes<T>> lanes;
  Eigen::internal::pstoreu(lanes.data(), x);
  for (T& lane : lanes) lane = function(lane);
  return Eigen::internal::ploadu<Packet<T>>(lanes.data());
}

// `y`, and x where x is NaN.
template <class T>
Packet<T> keep_nan(Packet<T> x, Packet<T> y) {
  return Eigen::internal::pselect(Eigen::internal::pcmp_eq(x, x), y, x);
}

}  // namespace detail

template <class T>
Packet<T> exponential(Packet<T> x) {
  return detail::keep_nan<T>(x, Eigen::internal::pexp(x));
}

template <class T>
Packet<T> hyperbolic_tangent(Packet<T> x) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return detail::keep_nan<T>(x, Eigen::internal::ptanh(x));
  } else {
    return detail::lane_by_lane<T>(x, [](T v) { return std::tanh(v); });
  }
}

// In float by a rational approximation; in double by the C library.
template <class T>
Packet<T> error_function(Packet<T> x) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return detail::keep_nan<T>(x, Eigen::internal::generic_fast_erf_float(x));
  } else {
    return detail::lane_by_lane<T>(x, [](T v) { return std::erf(v); });
  }
}

// to[i] = f(from[i]...) for i in [0, n), f on packets. `to` may be one of `from`.
template <class T, class Function, class... From>
void transform(Elements n, T* to, Function f, const From*... from) {
  using Eigen::internal::ploadu;
  const Elements whole = n / kLanes<T> * kLanes<T>;
  for (Elements i = 0; i < whole; i += kLanes<T>) {
    Eigen::internal::pstoreu(to + i, f(ploadu<Packet<T>>(from + i)...));
  }
  if (whole == n) return;
  const auto filled_up = [&](const T* values) {
    alignas(64) std::array<T, kLanes<T>> lanes{};
    std::copy(values + whole, values + n, lanes.begin());
    return ploadu<Packet<T>>(lanes.data());
  };
  alignas(64) std::array<T, kLanes<T>> lanes;
  Eigen::internal::pstoreu(lanes.data(), f(filled_up(from)...));
  std::copy_n(lanes.begin(), n - whole, to + whole);
}

// The sum over i of f(from[i]...), f on packets: kLanes partial sums, added up in one fixed order.
template <class T, class Function, class... From>
T sum_of(Elements n, Function f, const From*... from) {
  using Eigen::internal::ploadu;
  Packet<T> sums = splat<T>(0);
  const Elements whole = n / kLanes<T> * kLanes<T>;
  for (Elements i = 0; i < whole; i += kLanes<T>) {
    sums = Eigen::internal::padd(sums, f(ploadu<Packet<T>>(from + i)...));
  }
  alignas(64) std::array<T, kLanes<T>> lanes;
  Eigen::internal::pstoreu(lanes.data(), sums);
  for (Elements i = whole; i < n; ++i) {
    const Packet<T> one = f(splat<T>(from[i])...);
    lanes[static_cast<std::size_t>(i - whole)] += Eigen::internal::pfirst(one);
  }
  for (std::size_t half = lanes.size() / 2; half > 0; half /= 2) {
    for (std::size_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  }
  return lanes[0];
}

// The largest of n >= 1 values; NaNs may be passed over.
template <class T>
T largest(Elements n, const T* values) {
  T result = values[0];
  Elements i = 0;
  if (n >= kLanes<T>) {
    Packet<T> most = Eigen::internal::ploadu<Packet<T>>(values);
    for (i = kLanes<T>; i + kLanes<T> <= n; i += kLanes<T>) {
      most = Eigen::internal::pmax(most, Eigen::internal::ploadu<Packet<T>>(values + i));
    }
    result = Eigen::internal::predux_max(most);
  }
  for (; i < n; ++i) result = std::max(result, values[i]);
  return result;
}

}  // namespace annulet::nn
