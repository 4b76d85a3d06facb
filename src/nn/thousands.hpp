#pragma once
// Numbers as people read them in a model's description: 1,863,690.
#include <string>

#include "annulet/base/units.hpp"

namespace annulet::nn {

inline std::string with_thousands(Elements n) {
  std::string digits = std::to_string(n);
  for (std::size_t end = digits.size(); end > 3; end -= 3) digits.insert(end - 3, 1, ',');
  return digits;
}

}  // namespace annulet::nn
