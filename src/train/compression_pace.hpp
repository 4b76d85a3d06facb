#pragma once
// What compressing gradients takes of a core, for predictions; medians over values that are in nobody's cache.
#include "annulet/cost/link.hpp"

namespace annulet::train {

// As cost::StepProfile has them.
struct CompressionPaces {
  cost::SecondsPerByte narrowing{}, choosing{}, spreading{};
};

CompressionPaces compression_paces();

}  // namespace annulet::train
