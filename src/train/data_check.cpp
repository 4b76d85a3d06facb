#include "annulet/train/data_check.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "annulet/base/error.hpp"

namespace annulet::train {
namespace {

[[noreturn]] void refuse(std::string_view name, const std::string& what, std::string hint) {
  throw InputError({fmt::format("the {} data do not fit the model: {}", name, what), "", std::move(hint)});
}

void require_fitting_mlp(const Config& config, const data::SampleShape& shape, std::string_view name) {
  if (shape.tokens > 0) refuse(name, "an mlp reads features, these are tokens", "Use model.kind = gpt");
  if (shape.features != config.widths.front()) {
    refuse(name,
           fmt::format("samples have {} features, model.widths begins with {}", shape.features, config.widths.front()),
           fmt::format("Begin model.widths with {}", shape.features));
  }
  const bool regression = config.loss == "mse";
  if (regression != (shape.labels == 0)) {
    refuse(name,
           regression ? "model.loss = mse wants real values, these are classes"
                      : "model.loss = cross_entropy wants classes, these are real values",
           "Choose the other model.loss");
  }
  const Elements wanted = regression ? shape.values : shape.classes;
  if (wanted > config.widths.back() || (regression && wanted != config.widths.back())) {
    refuse(name,
           fmt::format("there are {} {}, model.widths ends with {}", wanted, regression ? "values a sample" : "classes",
                       config.widths.back()),
           fmt::format("End model.widths with {}", wanted));
  }
}

}  // namespace

void require_fitting(const Config& config, const data::Source& source, Elements vocabulary, std::string_view name) {
  const data::SampleShape shape = source.shape();
  if (config.model == "mlp") return require_fitting_mlp(config, shape, name);
  if (shape.tokens != config.context) {
    refuse(name, fmt::format("windows have {} tokens, model.context is {}", shape.tokens, config.context),
           "Use windows of the model's context");
  }
  if (shape.classes > vocabulary) {
    refuse(name, fmt::format("there are {} tokens, model.vocabulary is {}", shape.classes, vocabulary),
           fmt::format("Set model.vocabulary to {}", shape.classes));
  }
}

void require_whole_samples(const data::Source& train) {
  if (train.targets() == train.samples() * std::max<Elements>(1, train.shape().tokens)) return;
  refuse("training", "some windows have tokens without a label", "Train on windows that start at random");
}

}  // namespace annulet::train
