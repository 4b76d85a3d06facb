#include "annulet/train/data.hpp"

#include "annulet/base/error.hpp"
#include "annulet/data/dataset.hpp"
#include "annulet/train/weights.hpp"

namespace annulet::train {
namespace {

template <class S>
std::unique_ptr<data::Source> own(S source) {
  return std::make_unique<S>(std::move(source));
}

data::Dataset synthetic_rows(const Config& config, Elements samples, std::uint64_t seed) {
  const bool regression = config.loss == "mse";
  return data::make_synthetic({samples, config.widths.front(), regression ? 0 : config.widths.back(),
                               regression ? config.widths.back() : 0, seed});
}

data::Windows synthetic_windows(const Config& config, Elements samples, data::Windows::Order order,
                                std::uint64_t seed) {
  return data::make_synthetic_text(samples * config.context + 1, {config.context, order, config.vocabulary, seed});
}

Data load_synthetic(const Config& config) {
  Data data;
  const bool test = config.test_samples > 0;
  if (config.model == "gpt") {
    using Order = data::Windows::Order;
    data.train = own(synthetic_windows(config, config.samples, Order::random, config.seed));
    if (test) data.test = own(synthetic_windows(config, config.test_samples, Order::consecutive, config.seed + 1));
  } else {
    data.train = own(synthetic_rows(config, config.samples, config.seed));
    if (test) data.test = own(synthetic_rows(config, config.test_samples, config.seed + 1));
  }
  return data;
}

data::Dataset read_idx(const Config& config, const std::string& images, const std::string& labels) {
  const Elements classes = config.loss == "mse" ? 0 : config.classes > 0 ? config.classes : config.widths.back();
  return data::load_idx({images, labels, classes, {config.mean, config.deviation}});
}

Data load_idx(const Config& config) {
  if (config.images.empty() || config.labels.empty()) {
    throw InputError({"data.images or data.labels is missing", "data.kind = idx reads two files",
                      "Name both, or use data.kind = synthetic"});
  }
  Data data;
  data.train = own(read_idx(config, config.images, config.labels));
  if (!config.test_images.empty()) data.test = own(read_idx(config, config.test_images, config.test_labels));
  return data;
}

Data load_text(const Config& config) {
  if (config.text.empty()) {
    throw InputError(
        {"data.text is missing", "data.kind = text reads a file", "Name one, or use data.kind = synthetic"});
  }
  data::Text text = data::load_text({config.text, config.validation, config.context, config.seed,
                                     config.init.empty() ? std::nullopt : load_vocabulary(config.init)});
  Data data;
  data.train = own(std::move(text.train));
  if (text.validation) data.test = own(std::move(*text.validation));
  data.vocabulary = std::move(text.vocabulary);
  return data;
}

}  // namespace

Data load_data(const Config& config) {
  if (config.data == "synthetic") return load_synthetic(config);
  return config.data == "text" ? load_text(config) : load_idx(config);
}

}  // namespace annulet::train
