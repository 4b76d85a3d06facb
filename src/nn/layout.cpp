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
  std::size_t layer = 0;
  for (Tensor& tensor : tensors_) {
    ANNULET_EXPECTS(find(tensor.name) == &tensor, "the names of tensors are unique");
    const bool next = &tensor != tensors_.data() && tensor.layer == layer + 1;
    ANNULET_EXPECTS(tensor.layer == layer || next, "layers are counted up from 0");
    layer = tensor.layer;
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
void initialize(const Tensor& tensor, std::uint64_t seed, Elements first, std::span<T> values) {
  ANNULET_EXPECTS(first >= 0 && first + std::ssize(values) <= tensor.count, "the elements are the tensor's");
  const RandomStream stream(seed, tensor.name);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<T>(draw(tensor.initial, stream, static_cast<std::size_t>(first) + i));
  }
}

template <class T>
void initialize(const Layout& layout, std::uint64_t seed, std::span<T> weights) {
  ANNULET_EXPECTS(static_cast<Elements>(weights.size()) == layout.size(), "weights are the whole flat buffer");
  for (const Tensor& tensor : layout.tensors()) {
    const auto first = static_cast<std::size_t>(tensor.first), count = static_cast<std::size_t>(tensor.count);
    initialize(tensor, seed, 0, weights.subspan(first, count));
  }
}

template void initialize<float>(const Tensor&, std::uint64_t, Elements, std::span<float>);
template void initialize<double>(const Tensor&, std::uint64_t, Elements, std::span<double>);
template void initialize<float>(const Layout&, std::uint64_t, std::span<float>);
template void initialize<double>(const Layout&, std::uint64_t, std::span<double>);

}  // namespace annulet::nn
