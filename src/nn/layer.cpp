#include "nn/layer.hpp"

#include "annulet/base/error.hpp"

namespace annulet::nn {

TensorPlace place_of(const Layout& layout, std::string_view name) {
  const Tensor* tensor = layout.find(name);
  ANNULET_EXPECTS(tensor != nullptr, "a layer is bound to a layout that holds its tensors");
  return {static_cast<std::size_t>(tensor - layout.tensors().data()), tensor->first};
}

}  // namespace annulet::nn
