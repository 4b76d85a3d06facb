#include <dlfcn.h>

#include <Eigen/Core>
#include <algorithm>
#include <initializer_list>

#include "nn/blas.hpp"

namespace annulet::nn::blas {

const char* const kName = "own, large ones BLAS";

namespace {

// Panels of about half a millisecond, with a pulse() after each; small ones would be packed too often.
constexpr Elements kPanelOperations = 100'000'000;

// A product with less in any dimension is left to the tile, which is faster there than the library tried (OpenBLAS
// 0.3.21); above they are about equal.
constexpr Elements kSmallest = 512;

template <class T>
bool is_small(Matrix<const T> w, Elements samples) {
  return std::min({w.rows, w.columns, samples}) < kSmallest;
}

template <class T>
using Dense = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

template <class T>
auto map(Matrix<const T> m) {
  return Eigen::Map<const Dense<T>>(m.data, m.rows, m.columns);
}

template <class T>
auto map(Matrix<T> m) {
  return Eigen::Map<Dense<T>>(m.data, m.rows, m.columns);
}

// Calls body(first, count) for panels of a dimension of `extent`, with a pulse after each.
template <class Body>
void for_each_panel(Elements extent, Elements others, Progress& progress, Body body) {
  const Elements width = std::max<Elements>(64, kPanelOperations / std::max<Elements>(1, 2 * others) / 64 * 64);
  for (Elements first = 0; first < extent; first += width) {
    body(first, std::min(width, extent - first));
    progress.pulse();
  }
}

}  // namespace

// Eigen calls the BLAS with beta = 1, so that the bias is what is added to.
template <class T>
bool multiply_forward(Matrix<const T> x, Matrix<const T> w, const T* bias, Matrix<T> y, Progress& progress) {
  if (is_small(w, x.rows)) return false;
  if (bias == nullptr) std::ranges::fill(y.elements(), T(0));
  for (Elements r = 0; bias != nullptr && r < y.rows; ++r) std::copy_n(bias, y.columns, y.row(r));
  for_each_panel(w.rows, x.rows * w.columns, progress, [&](Elements first, Elements count) {
    map(y).middleCols(first, count).noalias() += map(x) * map(w).middleRows(first, count).transpose();
  });
  return true;
}

template <class T>
bool multiply_backward(Matrix<const T> dy, Matrix<const T> w, Matrix<T> dx, Progress& progress) {
  if (is_small(w, dy.rows)) return false;
  for_each_panel(w.columns, dy.rows * w.rows, progress, [&](Elements first, Elements count) {
    map(dx).middleCols(first, count).noalias() = map(dy) * map(w).middleCols(first, count);
  });
  return true;
}

template <class T>
bool multiply_outer(Matrix<const T> dy, Matrix<const T> x, Matrix<T> dw, Accumulate accumulate, Progress& progress) {
  if (is_small<T>(dw, x.rows)) return false;
  for_each_panel(dw.rows, x.rows * dw.columns, progress, [&](Elements first, Elements count) {
    auto panel = map(dw).middleRows(first, count);
    if (accumulate == Accumulate::overwrite) panel.setZero();
    panel.noalias() += map(dy).middleCols(first, count).transpose() * map(x);
  });
  return true;
}

// Found at run time, since which BLAS serves libblas.so is the system administrator's choice.
void prepare() {
  static const bool done = [] {
    for (const char* name : {"openblas_set_num_threads", "MKL_Set_Num_Threads", "bli_thread_set_num_threads"}) {
      if (void* const symbol = dlsym(RTLD_DEFAULT, name)) reinterpret_cast<void (*)(int)>(symbol)(1);
    }
    return true;
  }();
  (void)done;
}

#define ANNULET_INSTANTIATE(T)                                                                         \
  template bool multiply_forward<T>(Matrix<const T>, Matrix<const T>, const T*, Matrix<T>, Progress&); \
  template bool multiply_backward<T>(Matrix<const T>, Matrix<const T>, Matrix<T>, Progress&);          \
  template bool multiply_outer<T>(Matrix<const T>, Matrix<const T>, Matrix<T>, Accumulate, Progress&);
ANNULET_INSTANTIATE(float)
ANNULET_INSTANTIATE(double)
#undef ANNULET_INSTANTIATE

}  // namespace annulet::nn::blas
