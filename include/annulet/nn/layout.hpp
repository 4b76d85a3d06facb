#pragma once
// Where each tensor lies in the one flat buffer of weights, and in the one of gradients.
// Tensors stand in the order in which backward finishes their gradients (last layer first), so that a bucket is a slice
// and nothing is copied in or out. Names and shapes are PyTorch's: a Linear's weight is [out, in].
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "annulet/base/units.hpp"

namespace annulet::nn {

// How a tensor starts. uniform: U(-scale, scale); normal: mean 0, deviation `scale`; constant: `scale` everywhere.
struct Initial {
  enum class Kind { uniform, normal, constant };
  Kind kind = Kind::constant;
  double scale = 0;
};

struct Tensor {
  std::string name;
  std::vector<Elements> shape;
  Initial initial;
  std::size_t layer = 0;  // tensors that are used together have one number, counted from the output
  bool tied = false;      // its layer is used at both ends of the model
  Elements first = 0;     // offset into the flat buffer, set by Layout
  Elements count = 0;     // product of the shape, set by Layout
};

class Layout {
 public:
  Layout() = default;
  // `tensors` in the order in which backward finishes them; offsets and counts are filled in.
  // Throws ContractError for a repeated name, a negative extent or layers that are not counted up from 0.
  explicit Layout(std::vector<Tensor> tensors);

  std::span<const Tensor> tensors() const { return tensors_; }
  Elements size() const { return size_; }  // elements of the flat buffer
  std::size_t layers() const { return tensors_.empty() ? 0 : tensors_.back().layer + 1; }
  const Tensor* find(std::string_view name) const;  // nullptr if there is none

 private:
  std::vector<Tensor> tensors_;
  Elements size_ = 0;
};

// Initial weights: element i of a tensor depends on (seed, tensor name, i) only. Drawn in double, then rounded, so that
// float and double runs start from the same model. `weights` has layout.size() elements.
// `values` become those of tensor elements [first, first + values.size()).
template <class T>
void initialize(const Tensor& tensor, std::uint64_t seed, Elements first, std::span<T> values);

template <class T>
void initialize(const Layout& layout, std::uint64_t seed, std::span<T> weights);

}  // namespace annulet::nn
