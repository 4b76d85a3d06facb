#pragma once
// What one rank brings to the all-reduce of a step: the gradient of its slice of a global batch, divided by the global
// count, so that the sum over the ranks is the gradient of the mean loss over the batch.
#include <filesystem>
#include <vector>

#include "annulet/train/config.hpp"
#include "annulet/train/data.hpp"

namespace annulet::train {

// On the first batch of a run with this configuration, at the weights of `file`; in the order of the model's layout.
// A run in double is computed in double and rounded. Throws InputError where data, model and weights do not fit.
std::vector<float> rank_gradient(const Config& config, const Data& data, const std::filesystem::path& file, int rank,
                                 int world);

}  // namespace annulet::train
