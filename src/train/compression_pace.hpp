#pragma once
// What compressing gradients takes of a core, for predictions; of several passes over a few MiB the quickest.
#include "annulet/cost/link.hpp"

namespace annulet::train {

// As cost::StepProfile has them.
struct CompressionPaces {
  cost::SecondsPerByte narrowing{}, choosing{}, spreading{};
};

CompressionPaces compression_paces();

}  // namespace annulet::train
