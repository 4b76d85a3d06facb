#pragma once
// What a trainer draws samples from: a data set of rows (dataset.hpp) or windows of a text (text.hpp). A sample is what
// a batch counts; it has features or tokens, and labels or values, of the same shape for all samples.
#include <cstdint>
#include <span>

#include "annulet/base/labels.hpp"
#include "annulet/data/sampler.hpp"

namespace annulet::data {

// How many of each a sample has.
struct SampleShape {
  Elements features = 0;
  Elements tokens = 0;
  Elements labels = 0;
  Elements values = 0;
  Elements classes = 0;  // labels, and tokens, are in [0, classes)
};

// Where samples are written to: [n, ...] of the shape; spans of what samples do not have are not touched.
template <class T>
struct Rows {
  std::span<T> features;
  std::span<std::int32_t> tokens;
  std::span<std::int32_t> labels;
  std::span<T> values;
};

class Source {
 public:
  virtual ~Source() = default;

  virtual Elements samples() const = 0;  // of an epoch
  virtual SampleShape shape() const = 0;

  // What a mean over all samples divides by: labelled tokens, or samples.
  virtual Elements targets() const { return samples(); }

  // Whether an index is a draw of a random sample, rather than the sample of that number.
  virtual bool random() const { return false; }

  // The samples of these indices. Allocates nothing.
  virtual void gather(std::span<const Elements> indices, const Rows<float>& rows) const = 0;
  virtual void gather(std::span<const Elements> indices, const Rows<double>& rows) const = 0;

  // Equal on ranks that read the same data. Not for security.
  virtual std::uint64_t fingerprint() const = 0;
};

}  // namespace annulet::data
