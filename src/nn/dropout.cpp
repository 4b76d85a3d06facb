#include "nn/dropout.hpp"

#include <algorithm>
#include <array>

namespace annulet::nn {
namespace {

template <class T>
void multiply(Matrix<const T> x, const T* mask, Matrix<T> y) {
  T* __restrict to = y.data;
  for (Elements i = 0; i < x.size(); ++i) to[i] = x.data[i] * mask[i];
}

}  // namespace

template <class T>
Dropout<T>::Dropout(const DropoutOptions& options, Elements units, std::span<T> mask)
    : probability_(options.probability), stream_(options.seed, "dropout." + options.name), units_(units), mask_(mask) {}

template <class T>
void Dropout<T>::draw(const Pass<T>& pass, Elements rows) {
  if (pass.mode == Mode::evaluate) {
    std::fill_n(mask_.begin(), rows * units_, T(1));
    return;
  }
  const T kept = static_cast<T>(1 / (1 - probability_));
  const auto threshold = static_cast<std::uint64_t>(probability_ * 0x1p32);
  const std::uint64_t first_row = pass.first_draw * static_cast<std::uint64_t>(pass.time);
  for (Elements r = 0; r < rows; ++r) {
    const std::uint64_t first = (first_row + static_cast<std::uint64_t>(r)) * static_cast<std::uint64_t>(units_);
    T* row = mask_.data() + r * units_;
    std::array<std::uint32_t, 4> words = stream_.words(first / 4);
    for (Elements u = 0; u < units_; ++u) {
      const std::uint64_t draw = first + static_cast<std::uint64_t>(u);
      if (draw % 4 == 0) words = stream_.words(draw / 4);
      row[u] = words[draw % 4] < threshold ? T(0) : kept;
    }
    pass.progress.pulse();
  }
}

template <class T>
void Dropout<T>::forward(const Pass<T>& pass, Matrix<const T> x, Matrix<T> y) {
  draw(pass, x.rows);
  multiply(x, mask_.data(), y);
}

template <class T>
void Dropout<T>::backward(const Pass<T>&, Matrix<const T>, Matrix<const T>, Matrix<const T> dy, Matrix<T> dx) {
  if (!dx.empty()) multiply(dy, mask_.data(), dx);
}

template class Dropout<float>;
template class Dropout<double>;

}  // namespace annulet::nn
