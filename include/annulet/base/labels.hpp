#pragma once
// What data and models agree on about labels.
#include <cstdint>

namespace annulet {

// Of a token or sample whose output does not count (PyTorch's ignore_index).
constexpr std::int32_t kNoLabel = -100;

}  // namespace annulet
