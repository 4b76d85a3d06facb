#include "nn/dropout.hpp"

#include <algorithm>

namespace annulet::nn {
namespace {

template <class T>
void multiply(Matrix<const T> x, const T* mask, Matrix<T> y) {
  T* __restrict to = y.data;
  for (Elements i = 0; i < x.size(); ++i) to[i] = x.data[i] * mask[i];
}

}  // namespace

template <class T>
Dropout<T>::Dropout(const DropoutOptions& options, Elements units, Elements capacity)
    : probability_(options.probability),
      stream_(options.seed, "dropout." + options.name),
      units_(units),
      mask_(static_cast<std::size_t>(units * capacity)) {}

template <class T>
void Dropout<T>::draw(std::uint64_t first_draw, Matrix<T> mask, Progress& progress) const {
  const T kept = static_cast<T>(1 / (1 - probability_));
  for (Elements r = 0; r < mask.rows; ++r) {
    const std::uint64_t first = (first_draw + static_cast<std::uint64_t>(r)) * static_cast<std::uint64_t>(units_);
    for (Elements u = 0; u < units_; ++u) {
      mask.row(r)[u] = stream_.uniform(first + static_cast<std::uint64_t>(u)) < probability_ ? T(0) : kept;
    }
    progress.pulse();
  }
}

template <class T>
void Dropout<T>::forward(const Pass<T>& pass, Matrix<const T> x, Matrix<T> y) {
  if (pass.mode == Mode::evaluate) {
    std::fill_n(mask_.begin(), x.size(), T(1));
    std::copy_n(x.data, x.size(), y.data);
    return;
  }
  draw(pass.first_draw, Matrix<T>(mask_.data(), x.rows, x.columns), pass.progress);
  multiply(x, mask_.data(), y);
}

template <class T>
void Dropout<T>::backward(const Pass<T>&, Matrix<const T>, Matrix<const T>, Matrix<const T> dy, Matrix<T> dx) {
  if (!dx.empty()) multiply(dy, mask_.data(), dx);
}

template class Dropout<float>;
template class Dropout<double>;

}  // namespace annulet::nn
