#pragma once
// Inverted dropout (Srivastava et al., JMLR 15, 2014): y = x / (1 - p) with probability 1 - p, else 0.
// The mask of a sample is a function of (seed, layer name, place of the sample among all drawn, row of the sample,
// unit): it does not depend on the rank or on how samples are split into batches.
#include <string>

#include "annulet/base/random.hpp"
#include "nn/layer.hpp"

namespace annulet::nn {

struct DropoutOptions {
  std::string name;        // of the layer whose activations are dropped
  double probability = 0;  // in [0, 1)
  std::uint64_t seed = 0;
};

template <class T>
class Dropout final : public Layer<T> {
 public:
  // `mask` has room for the largest batch, [rows, units], and outlives the layer.
  Dropout(const DropoutOptions& options, Elements units, std::span<T> mask);

  Elements outputs() const override { return units_; }
  void forward(const Pass<T>& pass, Matrix<const T> x, Matrix<T> y) override;
  void backward(const Pass<T>& pass, Matrix<const T> x, Matrix<const T> y, Matrix<const T> dy, Matrix<T> dx) override;

  // The mask of a forward pass of that many rows, all that backward needs of it: 0 or 1 / (1 - p), 1 in evaluation.
  void draw(const Pass<T>& pass, Elements rows);

 private:
  double probability_;
  RandomStream stream_;
  Elements units_;
  std::span<T> mask_;
};

}  // namespace annulet::nn
