#include <algorithm>

#include "annulet/base/sum_tree.hpp"
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

// C = sum in the tree over micro-shards of A^T B, a block of C at a time. A block's sums, one for each level of the
// tree, lie on the stack. A right neighbour of one micro-shard is added by the tile itself, which starts from what is
// there.
template <class T>
class TreeOfProducts {
 public:
  TreeOfProducts(Matrix<const T> a, Matrix<const T> b, Matrix<T> c, MicroShards micro_shards, Pulses& pulses)
      : a_(a), b_(b), c_(c), micro_shards_(micro_shards), pulses_(pulses) {}

  void run() {
    for (column_ = 0; column_ < c_.columns; column_ += kTileColumns<T>) {
      columns_ = std::min(kTileColumns<T>, c_.columns - column_);
      for (row_ = 0; row_ < c_.rows; row_ += kBlockRows) {
        rows_ = std::min(kBlockRows, c_.rows - row_);
        add_up(micro_shards_.samples, 0, {c_.row(row_) + column_, c_.columns}, 0);
      }
    }
  }

 private:
  static constexpr Elements kBlockRows = 8 * kTileRows;
  static constexpr std::size_t kLevels = 6;
  static_assert(Elements{1} << kLevels >= kMostMicroShards);

  // Returns the step of the inner dimension after the last one of these micro-shards.
  Elements add_up(std::span<const Elements> samples, Elements first, Rows<T> to, std::size_t level) {
    if (samples.size() == 1) return product(samples.front(), first, {nullptr, 0}, to);
    const auto half = static_cast<std::size_t>(first_half(std::ssize(samples)));
    const Elements middle = add_up(samples.first(half), first, to, level);
    const auto right = samples.subspan(half);
    const bool one_block = right.size() == 1 && right.front() * micro_shards_.rows_of_sample <= kDepth;
    if (one_block) return product(right.front(), middle, {to.data, to.row}, to);
    const Rows<T> sum{sums_[level], kTileColumns<T>};
    const Elements end = add_up(right, middle, sum, level + 1);
    for (Elements r = 0; r < rows_; ++r) {
      T* __restrict row = to.data + r * to.row;
      const T* __restrict more = sum.data + r * sum.row;
      for (Elements c = 0; c < columns_; ++c) row[c] += more[c];
    }
    return end;
  }

  // to = start + the product of one micro-shard.
  Elements product(Elements samples, Elements first, Rows<const T> start, Rows<T> to) {
    const Elements depth = samples * micro_shards_.rows_of_sample, whole_depth = block_depth(depth);
    Elements k = 0;
    do {
      const Elements steps = std::min(whole_depth, depth - k);
      pack_rows<T>(steps, columns_, {b_.row(first + k) + column_, b_.columns}, panel_);
      for (Elements i = 0; i < rows_; i += kTileRows) {
        const Elements rows = std::min<Elements>(kTileRows, rows_ - i);
        multiply_tile<T>(
            {rows, steps, columns_}, {a_.row(first + k) + row_ + i, 1, a_.columns}, panel_,
            {{start.data ? start.data + i * start.row : nullptr, start.row}, {to.data + i * to.row, to.row}});
        pulses_.worked(rows * columns_ * steps);
      }
      start = {to.data, to.row};
      k += steps;
    } while (k < depth);
    return first + depth;
  }

  Matrix<const T> a_, b_;
  Matrix<T> c_;
  MicroShards micro_shards_;
  Pulses& pulses_;
  Elements row_ = 0, rows_ = 0, column_ = 0, columns_ = 0;  // of C: the block
  alignas(64) T panel_[kDepth * kTileColumns<T>];
  alignas(64) T sums_[kLevels][kBlockRows * kTileColumns<T>];
};

}  // namespace

void prepare_products() { blas::prepare(); }

template <class T>
void multiply_forward(Matrix<const T> x, Matrix<const T> w, const T* bias, Matrix<T> y, Progress& progress,
                      Products products) {
  if (products == Products::fastest && blas::multiply_forward(x, w, bias, y, progress)) return;
  Pulses pulses(progress);
  const bool w_is_small = w.size() <= x.rows * (w.rows + w.columns);
  if (!w_is_small) return forward_transposed(x, w, bias, y, pulses);
  multiply<T>({x.rows, x.columns, w.rows}, {x.data, x.columns, 1}, rows_of_transpose(w), {bias, 0}, y, pulses);
}

template <class T>
void multiply_backward(Matrix<const T> dy, Matrix<const T> w, Matrix<T> dx, Progress& progress, Products products) {
  if (products == Products::fastest && blas::multiply_backward(dy, w, dx, progress)) return;
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

template <class T>
void multiply_outer(Matrix<const T> dy, Matrix<const T> x, Matrix<T> dw, MicroShards micro_shards, Progress& progress) {
  ANNULET_EXPECTS(std::ssize(micro_shards.samples) <= kMostMicroShards, "the tree's levels fit the stack");
  Pulses pulses(progress);
  TreeOfProducts<T>(dy, x, dw, micro_shards, pulses).run();
}

#define ANNULET_INSTANTIATE(T)                                                                                   \
  template void multiply_forward<T>(Matrix<const T>, Matrix<const T>, const T*, Matrix<T>, Progress&, Products); \
  template void multiply_backward<T>(Matrix<const T>, Matrix<const T>, Matrix<T>, Progress&, Products);          \
  template void multiply_outer<T>(Matrix<const T>, Matrix<const T>, Matrix<T>, Accumulate, Progress&);           \
  template void multiply_outer<T>(Matrix<const T>, Matrix<const T>, Matrix<T>, MicroShards, Progress&);
ANNULET_INSTANTIATE(float)
ANNULET_INSTANTIATE(double)
#undef ANNULET_INSTANTIATE

}  // namespace annulet::nn
