#include "nn/product.hpp"

#include <Eigen/Core>
#include <algorithm>

#include "nn/blas.hpp"

namespace annulet::nn {
namespace {

constexpr Elements kPanelOperations = 32'000'000;
constexpr Elements kPanelGranule = 48;  // rows of Eigen's register tile with AVX-512; also a multiple of AVX2's
constexpr Elements kPanelSamples = 256;
constexpr Elements kPanelElements = 64 << 10;  // samples times width

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

// Width of the panels of a dimension of `extent`, for some samples and a product of inner dimension `depth`.
Elements panel_width(Elements extent, Elements samples, Elements depth) {
  const Elements affordable = kPanelOperations / std::max<Elements>(1, 2 * samples * depth);
  const Elements fitting = std::min(affordable, kPanelElements / samples) / kPanelGranule * kPanelGranule;
  return std::min(extent, std::max(kPanelGranule, fitting));
}

struct Range {
  Elements first, count;
};

// Calls body(range of samples, range of the other dimension) for every panel, with a pulse after each.
template <class Body>
void for_each_panel(Elements samples, Elements extent, Elements depth, Progress& progress, Body body) {
  for (Elements s = 0; s < samples; s += kPanelSamples) {
    const Range some{s, std::min(kPanelSamples, samples - s)};
    const Elements width = panel_width(extent, some.count, depth);
    for (Elements e = 0; e < extent; e += width) {
      body(some, Range{e, std::min(width, extent - e)});
      progress.pulse();
    }
  }
}

// The panel of y [B, out] that `samples` and `outs` cut out = transpose of z [outs, samples] + bias [out] in every row.
template <class T>
void transpose_and_add(const T* z, const T* bias, Range samples, Range outs, Matrix<T> y) {
  for (Elements r = 0; r < samples.count; ++r) {
    T* __restrict row = y.row(samples.first + r) + outs.first;
    for (Elements c = 0; c < outs.count; ++c) row[c] = z[c * samples.count + r] + bias[outs.first + c];
  }
}

}  // namespace

void prepare_products() {
  static const bool done = [] {
    Eigen::setCpuCacheSizes(48 << 10, 1 << 20, 32 << 20);
    use_one_blas_thread();
    return true;
  }();
  (void)done;
}

// Eigen packs W faster where the product is column-major: a fifth less time than writing y at once.
template <class T>
void multiply_forward(Matrix<const T> x, Matrix<const T> w, const T* bias, Matrix<T> y, Progress& progress) {
  alignas(64) T scratch[kPanelElements];
  for_each_panel(x.rows, w.rows, w.columns, progress, [&](Range samples, Range outs) {
    Eigen::Map<Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>> z(scratch, samples.count, outs.count);
    z.noalias() =
        map(x).middleRows(samples.first, samples.count) * map(w).middleRows(outs.first, outs.count).transpose();
    transpose_and_add(scratch, bias, samples, outs, y);
  });
}

template <class T>
void multiply_backward(Matrix<const T> dy, Matrix<const T> w, Matrix<T> dx, Progress& progress) {
  for_each_panel(dy.rows, w.columns, w.rows, progress, [&](Range samples, Range ins) {
    map(dx).block(samples.first, ins.first, samples.count, ins.count).noalias() =
        map(dy).middleRows(samples.first, samples.count) * map(w).middleCols(ins.first, ins.count);
  });
}

template <class T>
void multiply_outer(Matrix<const T> dy, Matrix<const T> x, Matrix<T> dw, Accumulate accumulate, Progress& progress) {
  const bool overwrite = accumulate == Accumulate::overwrite;
  if (overwrite && x.rows == 0) std::ranges::fill(dw.elements(), T(0));
  for_each_panel(x.rows, dw.rows, dw.columns, progress, [&](Range samples, Range outs) {
    auto panel = map(dw).middleRows(outs.first, outs.count);
    if (overwrite && samples.first == 0) panel.setZero();
    panel.noalias() += map(dy).block(samples.first, outs.first, samples.count, outs.count).transpose() *
                       map(x).middleRows(samples.first, samples.count);
  });
}

#define ANNULET_INSTANTIATE(T)                                                                         \
  template void multiply_forward<T>(Matrix<const T>, Matrix<const T>, const T*, Matrix<T>, Progress&); \
  template void multiply_backward<T>(Matrix<const T>, Matrix<const T>, Matrix<T>, Progress&);          \
  template void multiply_outer<T>(Matrix<const T>, Matrix<const T>, Matrix<T>, Accumulate, Progress&);
ANNULET_INSTANTIATE(float)
ANNULET_INSTANTIATE(double)
#undef ANNULET_INSTANTIATE

}  // namespace annulet::nn
