#pragma once
// Order statistics of measured values.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

namespace annulet {

// The value below which a share `q` in [0, 1] of the values lies (nearest rank); nothing of no values.
template <class T>
std::optional<T> quantile(std::vector<T> values, double q) {
  if (values.empty()) return std::nullopt;
  const auto last = values.size() - 1;
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(q * static_cast<double>(last) + 0.5);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

template <class T>
std::optional<T> median(std::vector<T> values) {
  return quantile(std::move(values), 0.5);
}

}  // namespace annulet
