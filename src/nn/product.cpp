#include <algorithm>

#include "nn/blas.hpp"
#include "nn/kernel.hpp"
#include "nn/product.hpp"
#include "nn/pulses.hpp"

namespace annulet::nn {
namespace {

constexpr Elements kDepth = 192;             // most of the inner dimension that a block takes: 48 KiB of packed B
constexpr Elements kDepthGranule = 16;       // of a block's depth: whole packets to transpose
constexpr Elements kTransposedRows = 1'536;  // rows of a product that is computed transposed: 384 KiB of it

// Blocks of nearly equal depth: a last block of a few steps would cost as many loads and stores of C as a whole one.
Elements block_depth(Elements depth) {
  const Elements blocks = (depth + kDepth - 1) / kDepth, granules = blocks * kDepthGranule;
  return blocks == 0 ? 1 : (depth + granules - 1) / granules * kDepthGranule;
}

template <class T>
Rows<const T> rows_of(Matrix<T> m) {
  return {m.data, m.columns};
}

// C [rows, columns] = first + A B, where `first` may be C. pack(k, depth, column, columns, to) gives a block of B.
template <class T, class Pack>
void multiply(Shape shape, Factor<T> a, Pack pack, Rows<const T> first, Matrix<T> c, Pulses& pulses) {
  alignas(64) T panel[kDepth * kTileColumns<T>];
  const Elements whole_depth = block_depth(shape.depth);
  for (Elements j = 0; j < shape.columns; j += kTileColumns<T>) {
    const Elements columns = std::min(kTileColumns<T>, shape.columns - j);
    for (Elements k = 0; k < shape.depth; k += whole_depth) {
      const Elements depth = std::min(whole_depth, shape.depth - k);
      pack(k, depth, j, columns, panel);
      const Rows<const T> start = k == 0 ? first : rows_of(c);
      for (Elements i = 0; i < shape.rows; i += kTileRows) {
        const Elements rows = std::min<Elements>(kTileRows, shape.rows - i);
        multiply_tile<T>(
            {rows, depth, columns}, {a.data + i * a.row + k * a.step, a.row, a.step}, panel,
            {{start.data ? start.data + i * start.row + j : nullptr, start.row}, {c.row(i) + j, c.columns}});
        pulses.worked(rows * columns * depth);
      }
    }
  }
}

// How `multiply` below gets its blocks of B: rows of B as they are, or of its transpose.
template <class T>
auto rows_of_b(Matrix<const T> b) {
  return [b](Elements k, Elements depth, Elements column, Elements columns, T* to) {
    pack_rows<T>(depth, columns, {b.row(k) + column, b.columns}, to);
  };
}

template <class T>
auto rows_of_transpose(Matrix<const T> m) {
  return [m](Elements k, Elements depth, Elements column, Elements columns, T* to) {
    pack_transpose<T>(depth, columns, {m.row(column) + k, m.columns}, to);
  };
}

template <class T>
Matrix<const T> rows_from(Matrix<const T> m, Elements first, Elements count) {
  return {m.row(first), count, m.columns};
}

// z = W x^T + bias for a panel of samples; then y = z^T. W, the large one, is read where it lies, once.
template <class T>
void forward_transposed(Matrix<const T> x, Matrix<const T> w, const T* bias, Matrix<T> y, Pulses& pulses) {
  alignas(64) T scratch[kTransposedRows * kTileColumns<T>];
  for (Elements s = 0; s < x.rows; s += kTileColumns<T>) {
    const Elements samples = std::min(kTileColumns<T>, x.rows - s);
    for (Elements o = 0; o < w.rows; o += kTransposedRows) {
      const Elements outs = std::min(kTransposedRows, w.rows - o);
      const Matrix<T> z(scratch, outs, samples);
      for (Elements r = 0; r < outs; ++r) std::fill_n(z.row(r), samples, bias ? bias[o + r] : T(0));
      multiply<T>({outs, w.columns, samples}, {w.row(o), w.columns, 1}, rows_of_transpose(rows_from(x, s, samples)),
                  rows_of<T>(z), z, pulses);
      transpose<T>(outs, samples, {z.data, samples}, {y.row(s) + o, y.columns});
    }
  }
}

}  // namespace

void prepare_products() { blas::prepare(); }

template <class T>
void multiply_forward(Matrix<const T> x, Matrix<const T> w, const T* bias, Matrix<T> y, Progress& progress) {
  if (blas::multiply_forward(x, w, bias, y, progress)) return;
  Pulses pulses(progress);
  const bool w_is_small = w.size() <= x.rows * (w.rows + w.columns);
  if (!w_is_small) return forward_transposed(x, w, bias, y, pulses);
  multiply<T>({x.rows, x.columns, w.rows}, {x.data, x.columns, 1}, rows_of_transpose(w), {bias, 0}, y, pulses);
}

template <class T>
void multiply_backward(Matrix<const T> dy, Matrix<const T> w, Matrix<T> dx, Progress& progress) {
  if (blas::multiply_backward(dy, w, dx, progress)) return;
  Pulses pulses(progress);
  multiply<T>({dy.rows, dy.columns, w.columns}, {dy.data, dy.columns, 1}, rows_of_b(w), {nullptr, 0}, dx, pulses);
}

template <class T>
void multiply_outer(Matrix<const T> dy, Matrix<const T> x, Matrix<T> dw, Accumulate accumulate, Progress& progress) {
  if (blas::multiply_outer(dy, x, dw, accumulate, progress)) return;
  Pulses pulses(progress);
  const bool overwrite = accumulate == Accumulate::overwrite;
  if (overwrite && x.rows == 0) std::ranges::fill(dw.elements(), T(0));
  multiply<T>({dw.rows, x.rows, dw.columns}, {dy.data, 1, dy.columns}, rows_of_b(x),
              {overwrite ? nullptr : dw.data, dw.columns}, dw, pulses);
}

#define ANNULET_INSTANTIATE(T)                                                                         \
  template void multiply_forward<T>(Matrix<const T>, Matrix<const T>, const T*, Matrix<T>, Progress&); \
  template void multiply_backward<T>(Matrix<const T>, Matrix<const T>, Matrix<T>, Progress&);          \
  template void multiply_outer<T>(Matrix<const T>, Matrix<const T>, Matrix<T>, Accumulate, Progress&);
ANNULET_INSTANTIATE(float)
ANNULET_INSTANTIATE(double)
#undef ANNULET_INSTANTIATE

}  // namespace annulet::nn
