#pragma once
// The data of a configuration, read or made: what to train on, what to evaluate on, and, for text, the vocabulary.
#include <memory>
#include <optional>

#include "annulet/data/source.hpp"
#include "annulet/data/text.hpp"
#include "annulet/train/config.hpp"

namespace annulet::train {

struct Data {
  std::unique_ptr<data::Source> train, test;  // test is null where there is nothing to evaluate on
  std::optional<data::Vocabulary> vocabulary;
};

// Text takes the vocabulary of the weights in config.init, if those have one. Throws InputError.
Data load_data(const Config& config);

}  // namespace annulet::train
