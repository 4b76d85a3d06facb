#include "annulet/data/dataset.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <utility>

#include "annulet/base/error.hpp"

namespace annulet::data {
namespace {

Elements size_of(const Features& features) {
  return std::visit([](const auto& stored) { return std::ssize(stored); }, features);
}

[[noreturn]] void refuse(std::string what, std::string hint) {
  throw InputError({std::move(what), "the data set would be wrong", std::move(hint)});
}

void check_shape(Elements features, Elements samples) {
  if (samples == 0) refuse("the data set has no samples", "Give at least one");
  if (features > 0 && features % samples == 0) return;
  refuse(fmt::format("{} features do not divide among {} samples", features, samples),
         "Give features as [samples, features] and one label or row of values per sample");
}

template <class T>
void check_finite(const std::vector<T>& values, std::string_view kind, Elements per_sample) {
  if constexpr (std::is_floating_point_v<T>) {
    const auto bad = std::find_if_not(values.begin(), values.end(), [](T x) { return std::isfinite(x); });
    if (bad == values.end()) return;
    const Elements place = bad - values.begin();
    refuse(fmt::format("{} {} of sample {} is {}", kind, place % per_sample, place / per_sample, *bad),
           "Remove or fill in such samples");
  }
}

Elements checked_classes(std::span<const std::int32_t> labels, Elements classes) {
  if (classes == 0) classes = Elements{*std::max_element(labels.begin(), labels.end())} + 1;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] >= 0 && labels[i] < classes) continue;
    refuse(fmt::format("label {} of sample {} is not in [0, {})", labels[i], i, classes),
           "Check the number of classes");
  }
  return classes;
}

template <class T>
T scaled(double x, const Scaling& scaling) {
  return static_cast<T>((x - scaling.mean) / scaling.deviation);
}

template <class T>
T to(double x) {
  return static_cast<T>(x);
}

// Rows lie in shuffled order, which no hardware foresees.
template <class From>
void prefetch(const From* row, Elements width) {
  constexpr Elements kPerLine = 64 / sizeof(From);
  for (Elements i = 0; i < width; i += kPerLine) __builtin_prefetch(row + i);
}

template <class From, class To, class Convert>
void gather_rows(const std::vector<From>& rows, Elements width, std::span<const Elements> indices, To* out,
                 Convert convert) {
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (i + 1 < indices.size()) prefetch(rows.data() + indices[i + 1] * width, width);
    const From* row = rows.data() + indices[i] * width;
    out = std::transform(row, row + width, out, convert);
  }
}

// Four independent lanes of 64-bit words keep the multiplier busy; the rotation carries high bits back down.
class Hash {
 public:
  void add(std::uint64_t word) { lanes_[0] = mixed(lanes_[0], word); }

  template <class T>
  void add(const std::vector<T>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    add(bytes.size());
    std::size_t place = 0;
    for (; place + 32 <= bytes.size(); place += 32) {
      std::array<std::uint64_t, 4> words;
      std::memcpy(words.data(), bytes.data() + place, 32);
      for (std::size_t lane = 0; lane < 4; ++lane) lanes_[lane] = mixed(lanes_[lane], words[lane]);
    }
    for (; place < bytes.size(); ++place) add(std::to_integer<std::uint64_t>(bytes[place]));
  }

  std::uint64_t value() const {
    std::uint64_t hash = 0;
    for (const std::uint64_t lane : lanes_) hash = mixed(hash, lane);
    return hash ^ (hash >> 32);
  }

 private:
  static std::uint64_t mixed(std::uint64_t state, std::uint64_t word) {
    return std::rotl(state ^ word, 29) * 0x9E3779B97F4A7C15ULL;  // 2^64 / golden ratio, odd
  }

  std::array<std::uint64_t, 4> lanes_{1, 2, 3, 4};
};

}  // namespace

Dataset::Dataset(Features stored, Elements samples, Scaling scaling)
    : stored_(std::move(stored)), scaling_(scaling), samples_(samples) {
  if (!std::isfinite(scaling.mean) || !std::isfinite(scaling.deviation) || !(scaling.deviation > 0)) {
    refuse(fmt::format("features cannot be scaled by mean {} and deviation {}", scaling.mean, scaling.deviation),
           "Give a finite mean and a finite deviation above 0");
  }
  check_shape(size_of(stored_), samples);
  features_per_sample_ = size_of(stored_) / samples;
  std::visit([&](const auto& values) { check_finite(values, "feature", features_per_sample_); }, stored_);
  tabulate();
}

void Dataset::tabulate() {
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const double x = static_cast<double>(byte) / 255;
    std::get<0>(scaled_bytes_)[byte] = scaled<float>(x, scaling_);
    std::get<1>(scaled_bytes_)[byte] = scaled<double>(x, scaling_);
  }
}

Dataset Dataset::classification(Features features, std::vector<std::int32_t> labels, Elements classes,
                                Scaling scaling) {
  Dataset set(std::move(features), std::ssize(labels), scaling);
  set.classes_ = checked_classes(labels, classes);
  set.labels_ = std::move(labels);
  return set;
}

Dataset Dataset::regression(Features features, std::vector<double> values, Elements outputs, Scaling scaling) {
  if (outputs < 1 || std::ssize(values) % outputs != 0) {
    refuse(fmt::format("{} values do not divide into rows of {} outputs", values.size(), outputs),
           "Give values as [samples, outputs]");
  }
  check_finite(values, "value", outputs);
  Dataset set(std::move(features), std::ssize(values) / outputs, scaling);
  set.outputs_ = outputs;
  set.values_ = std::move(values);
  return set;
}

template <class T>
void Dataset::gather(std::span<const Elements> indices, std::span<T> features_out, std::span<std::int32_t> labels_out,
                     std::span<T> values_out) const {
  const Elements rows = std::ssize(indices);
  ANNULET_EXPECTS(std::ssize(features_out) == rows * features_per_sample_, "features_out is [n, features]");
  ANNULET_EXPECTS(classes_ == 0 || std::ssize(labels_out) == rows, "labels_out is [n]");
  ANNULET_EXPECTS(outputs_ == 0 || std::ssize(values_out) == rows * outputs_, "values_out is [n, outputs]");
  for (const Elements index : indices) ANNULET_EXPECTS(0 <= index && index < samples_, "an index names a sample");

  gather_features(indices, features_out);
  if (classes_ > 0) gather_rows(labels_, 1, indices, labels_out.data(), std::identity{});
  if (outputs_ > 0) gather_rows(values_, outputs_, indices, values_out.data(), to<T>);
}

template <class T>
void Dataset::gather_features(std::span<const Elements> indices, std::span<T> out) const {
  const auto gather_converted = [&](const auto& stored, auto convert) {
    gather_rows(stored, features_per_sample_, indices, out.data(), convert);
  };
  if (const auto* bytes = std::get_if<std::vector<std::uint8_t>>(&stored_)) {
    const T* table = std::get<std::array<T, 256>>(scaled_bytes_).data();
    gather_converted(*bytes, [table](std::uint8_t x) { return table[x]; });
  } else if (const auto* floats = std::get_if<std::vector<float>>(&stored_)) {
    const bool as_is = scaling_.mean == 0 && scaling_.deviation == 1;
    if (as_is) return gather_converted(*floats, [](float x) { return static_cast<T>(x); });
    gather_converted(*floats, [this](float x) { return scaled<T>(double{x}, scaling_); });
  } else {
    gather_converted(std::get<std::vector<double>>(stored_), [this](double x) { return scaled<T>(x, scaling_); });
  }
}

template void Dataset::gather(std::span<const Elements>, std::span<float>, std::span<std::int32_t>,
                              std::span<float>) const;
template void Dataset::gather(std::span<const Elements>, std::span<double>, std::span<std::int32_t>,
                              std::span<double>) const;

SampleShape Dataset::shape() const {
  return {.features = features_per_sample_,
          .labels = classes_ > 0 ? Elements{1} : Elements{0},
          .values = outputs_,
          .classes = classes_};
}

void Dataset::gather(std::span<const Elements> indices, const Rows<float>& rows) const {
  gather<float>(indices, rows.features, rows.labels, rows.values);
}

void Dataset::gather(std::span<const Elements> indices, const Rows<double>& rows) const {
  gather<double>(indices, rows.features, rows.labels, rows.values);
}

std::uint64_t Dataset::fingerprint() const {
  Hash hash;
  for (const Elements size : {samples_, features_per_sample_, classes_, outputs_}) {
    hash.add(static_cast<std::uint64_t>(size));
  }
  for (const double scale : {scaling_.mean, scaling_.deviation}) hash.add(std::bit_cast<std::uint64_t>(scale));
  std::visit([&](const auto& stored) { hash.add(stored); }, stored_);
  hash.add(labels_);
  hash.add(values_);
  return hash.value();
}

}  // namespace annulet::data
