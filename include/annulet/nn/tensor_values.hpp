#pragma once
// Where the values of a layout's tensors lie: in one flat buffer, each at its offset, or each tensor somewhere of its
// own, as ZeRO has them. A view; what it points to belongs to the caller.
#include <concepts>
#include <span>

#include "annulet/nn/layout.hpp"

namespace annulet::nn {

template <class T>
class TensorValues {
 public:
  TensorValues() = default;

  // A flat buffer of layout.size() elements.
  template <class Buffer>
  requires std::convertible_to<Buffer&&, std::span<T>> TensorValues(Buffer&& flat)
      : flat_(std::forward<Buffer>(flat)) {}

  // places[t]: where tensor t of the layout begins.
  static TensorValues at_places(std::span<T* const> places) {
    TensorValues values;
    values.places_ = places;
    return values;
  }

  // The first element of a tensor, whose offset in a flat buffer is `first`.
  T* at(std::size_t tensor, Elements first) const { return places_.empty() ? flat_.data() + first : places_[tensor]; }

  bool hold(const Layout& layout) const {
    return places_.empty() ? static_cast<Elements>(flat_.size()) == layout.size()
                           : places_.size() == layout.tensors().size();
  }

 private:
  std::span<T> flat_{};
  std::span<T* const> places_{};
};

}  // namespace annulet::nn
