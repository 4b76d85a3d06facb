// Where data sets come from: IDX files and a random generator.
#include <fmt/format.h>

#include <utility>

#include "annulet/base/error.hpp"
#include "annulet/base/random.hpp"
#include "annulet/data/dataset.hpp"
#include "annulet/data/idx.hpp"

namespace annulet::data {
namespace {

// The narrowest stored type that holds every value exactly.
Features features_of(IdxArray&& images) {
  switch (images.type) {
    case IdxType::u8:
      return std::move(images.bytes);
    case IdxType::i32:
    case IdxType::f64:
      return decode<double>(images);
    default:
      return decode<float>(images);
  }
}

void check_counts(const IdxArray& images, const IdxArray& labels) {
  if (images.items() == labels.items()) return;
  throw InputError({fmt::format("{} labels for {} images: size 1, at byte 4, differs between {} and {}", labels.items(),
                                images.items(), labels.describe(), images.describe()),
                    "samples would get labels of others", "Name the two files of one set"});
}

void check_rank(const IdxArray& labels, Elements classes) {
  const std::size_t allowed = labels.real() ? 2 : 1;
  if (labels.shape.size() > allowed) {
    throw InputError(
        {fmt::format("{} has rank {} at byte 3, at most {} wanted", labels.describe(), labels.shape.size(), allowed),
         "classes are integers [N], regression values are reals [N] or [N, outputs]",
         "Check that images and labels are not swapped"});
  }
  if (labels.real() && classes > 0) {
    throw InputError({fmt::format("{} holds reals, but {} classes are asked for", labels.describe(), classes),
                      "real labels mean regression", "Leave the number of classes out or give integer labels"});
  }
}

void check_range(const IdxArray& file, std::span<const std::int32_t> labels, const IdxOptions& options) {
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] >= 0 && (options.classes == 0 || labels[i] < options.classes)) continue;
    const std::string wanted = options.classes > 0 ? fmt::format("[0, {})", options.classes) : "[0, classes)";
    throw InputError({fmt::format("{}: label {} of sample {} at byte {} is not in {}", file.describe(), labels[i], i,
                                  file.place(static_cast<Elements>(i)).value(), wanted),
                      fmt::format("it belongs to '{}'", options.images.string()), "Check the number of classes"});
  }
}

void check_sizes(const SyntheticOptions& o) {
  const bool one_kind = (o.classes > 0 && o.outputs == 0) || (o.classes == 0 && o.outputs > 0);
  if (o.samples > 0 && o.features > 0 && one_kind) return;
  throw InputError({fmt::format("no data set has {} samples, {} features, {} classes and {} outputs", o.samples,
                                o.features, o.classes, o.outputs),
                    "samples and features are positive, and exactly one of classes and outputs", "Change the sizes"});
}

// In [0, 1) also after rounding: 24 bits are what a float holds.
std::vector<float> uniform_features(const SyntheticOptions& options) {
  const RandomStream stream(options.seed, "synthetic.features");
  std::vector<float> features(static_cast<std::size_t>(options.samples * options.features));
  for (std::size_t i = 0; i < features.size(); ++i) features[i] = static_cast<float>(stream.bits(i) >> 40) * 0x1p-24f;
  return features;
}

}  // namespace

Dataset load_idx(const IdxOptions& options) {
  const IdxArray labels = read_idx(options.labels);
  check_rank(labels, options.classes);
  IdxArray images = read_idx(options.images);
  check_counts(images, labels);
  if (labels.real()) {
    return Dataset::regression(features_of(std::move(images)), decode<double>(labels), labels.values_per_item(),
                               options.scaling);
  }
  auto classes = decode<std::int32_t>(labels);
  check_range(labels, classes, options);
  return Dataset::classification(features_of(std::move(images)), std::move(classes), options.classes, options.scaling);
}

Dataset make_synthetic(const SyntheticOptions& options) {
  check_sizes(options);
  if (options.outputs > 0) {
    const RandomStream stream(options.seed, "synthetic.values");
    std::vector<double> values(static_cast<std::size_t>(options.samples * options.outputs));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = stream.uniform(i);
    return Dataset::regression(uniform_features(options), std::move(values), options.outputs);
  }
  const RandomStream stream(options.seed, "synthetic.labels");
  std::vector<std::int32_t> labels(static_cast<std::size_t>(options.samples));
  for (std::size_t i = 0; i < labels.size(); ++i) {
    labels[i] = static_cast<std::int32_t>(stream.below(i, static_cast<std::uint64_t>(options.classes)));
  }
  return Dataset::classification(uniform_features(options), std::move(labels), options.classes);
}

}  // namespace annulet::data
