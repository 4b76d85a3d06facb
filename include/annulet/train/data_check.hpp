#pragma once
// Whether data are what a model can be trained on, before anything is computed.
#include <string_view>

#include "annulet/data/source.hpp"
#include "annulet/train/config.hpp"

namespace annulet::train {

// Throws InputError, calling the data by `name`, where their samples do not fit the model of the configuration.
void require_fitting(const Config& config, const data::Source& source, Elements vocabulary, std::string_view name);

// Throws InputError where training data have tokens without a label: gradients are divided by the number of targets
// before anybody counts them.
void require_whole_samples(const data::Source& train);

}  // namespace annulet::train
