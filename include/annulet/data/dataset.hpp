#pragma once
// Samples in memory: features [N, features] and, for each sample, either a class (classification) or real values
// (regression). Features keep the type they came in (images: one byte each) and are scaled when rows are gathered:
// x -> (x - mean) / deviation, uint8 as x/255 first, computed in double and rounded once.
#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <tuple>
#include <variant>
#include <vector>

#include "annulet/data/source.hpp"

namespace annulet::data {

using Features = std::variant<std::vector<std::uint8_t>, std::vector<float>, std::vector<double>>;

struct Scaling {
  double mean = 0;
  double deviation = 1;  // > 0
};

class Dataset final : public Source {
 public:
  // From memory. `features` is [N, F] with N = labels.size(); labels in [0, classes), classes 0: the largest label + 1.
  // Throws InputError for no samples, sizes that do not fit, a label out of range or a feature that is not finite.
  static Dataset classification(Features features, std::vector<std::int32_t> labels, Elements classes,
                                Scaling scaling = {});

  // From memory. `features` is [N, F], `values` is [N, outputs]. Throws InputError likewise.
  static Dataset regression(Features features, std::vector<double> values, Elements outputs, Scaling scaling = {});

  Elements samples() const override { return samples_; }      // N
  Elements features() const { return features_per_sample_; }  // F
  Elements classes() const { return classes_; }               // 0 for regression
  Elements outputs() const { return outputs_; }               // 0 for classification

  // Rows `indices` of the data set: features_out [n, F]; labels_out [n] for classification, values_out [n, outputs] for
  // regression; the span of the other kind is not touched and may be empty. T: float, double. Allocates nothing.
  template <class T>
  void gather(std::span<const Elements> indices, std::span<T> features_out, std::span<std::int32_t> labels_out,
              std::span<T> values_out) const;

  // Hash of shape, scaling and contents: equal on ranks that read the same data. About 5 GB/s; not for security.
  std::uint64_t fingerprint() const override;

  SampleShape shape() const override;
  void gather(std::span<const Elements> indices, const Rows<float>& rows) const override;
  void gather(std::span<const Elements> indices, const Rows<double>& rows) const override;

 private:
  Dataset(Features stored, Elements samples, Scaling scaling);
  void tabulate();
  template <class T>
  void gather_features(std::span<const Elements> indices, std::span<T> out) const;

  Features stored_;
  Scaling scaling_;
  Elements samples_, features_per_sample_, classes_ = 0, outputs_ = 0;
  std::vector<std::int32_t> labels_;
  std::vector<double> values_;
  std::tuple<std::array<float, 256>, std::array<double, 256>> scaled_bytes_;  // what each uint8 becomes
};

struct IdxOptions {
  std::filesystem::path images;  // any rank: [N, ...] is read as N samples
  std::filesystem::path labels;  // integers [N]: classes; reals [N] or [N, outputs]: regression
  Elements classes = 0;          // 0: the largest label + 1
  Scaling scaling{};
};

// Throws InputError with both files, the place and the numbers where they do not belong together (see read_idx as
// well).
Dataset load_idx(const IdxOptions& options);

struct SyntheticOptions {
  Elements samples = 1024;
  Elements features = 784;
  Elements classes = 10;  // labels uniform in [0, classes); 0: regression
  Elements outputs = 0;   // values uniform in [0, 1); exactly one of classes and outputs is positive
  std::uint64_t seed = 1;
};

// Features uniform in [0, 1), the same on every rank. Throws InputError for sizes that are not positive.
Dataset make_synthetic(const SyntheticOptions& options);

}  // namespace annulet::data
