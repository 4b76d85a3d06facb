#include "annulet/nn/layout.hpp"

#include <algorithm>

#include "annulet/base/error.hpp"
#include "annulet/base/random.hpp"

namespace annulet::nn {
namespace {

Elements product(const std::vector<Elements>& shape) {
  Elements count = 1;
  for (const Elements extent : shape) {
    ANNULET_EXPECTS(extent >= 0, "the extents of a tensor are not negative");
    count *= extent;
  }
  return count;
}

double draw(const Initial& initial, const RandomStream& stream, std::uint64_t index) {
  switch (initial.kind) {
    case Initial::Kind::uniform:
      return stream.uniform(index, -initial.scale, initial.scale);
    case Initial::Kind::normal:
      return initial.scale * stream.normal(index);
    case Initial::Kind::constant:
      break;
  }
  return initial.scale;
}

}  // namespace

Layout::Layout(std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {
  for (Tensor& tensor : tensors_) {
    ANNULET_EXPECTS(find(tensor.name) == &tensor, "the names of tensors are unique");
    tensor.first = size_;
    tensor.count = product(tensor.shape);
    size_ += tensor.count;
  }
}

const Tensor* Layout::find(std::string_view name) const {
  const auto found = std::ranges::find(tensors_, name, &Tensor::name);
  return found == tensors_.end() ? nullptr : &*found;
}

template <class T>
void initialize(const Layout& layout, std::uint64_t seed, std::span<T> weights) {
  ANNULET_EXPECTS(static_cast<Elements>(weights.size()) == layout.size(), "weights are the whole flat buffer");
  for (const Tensor& tensor : layout.tensors()) {
    const RandomStream stream(seed, tensor.name);
    for (std::size_t i = 0; i < static_cast<std::size_t>(tensor.count); ++i) {
      weights[static_cast<std::size_t>(tensor.first) + i] = static_cast<T>(draw(tensor.initial, stream, i));
    }
  }
}

template void initialize<float>(const Layout&, std::uint64_t, std::span<float>);
template void initialize<double>(const Layout&, std::uint64_t, std::span<double>);

}  // namespace annulet::nn
