#include <algorithm>
#include <array>

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

// C = sum in the tree over micro-shards of A^T B. What is done to each tile is planned once: sums that wait for their
// right neighbour lie in slots on the stack, one for each level of the tree, and the part that completes the neighbour
// adds them to it. Up to kDepth rows all parts of a tile follow each other, and its sums stay in the first-level cache;
// above, blocks of several tiles take one part after the other, and B is packed anew for each block.
template <class T>
class TreeOfProducts {
 public:
  TreeOfProducts(Matrix<const T> a, Matrix<const T> b, Matrix<T> c, MicroShards micro_shards, Pulses& pulses)
      : a_(a), b_(b), c_(c), rows_of_sample_(micro_shards.rows_of_sample), pulses_(pulses) {
    plan(micro_shards.samples, nullptr, nullptr, 0);
  }

  void run() {
    for (column_ = 0; column_ < c_.columns; column_ += kTileColumns<T>) {
      columns_ = std::min(kTileColumns<T>, c_.columns - column_);
      b_.rows <= kDepth ? multiply_tiles() : multiply_blocks();
    }
  }

 private:
  static constexpr Elements kBlockRows = 16 * kTileRows;
  static constexpr std::size_t kLevels = 6;
  static_assert(Elements{1} << kLevels >= kMostMicroShards);

  // A slot that waits, and the next one.
  struct Waiting {
    Rows<const T> slot;
    const Waiting* next;
  };

  // One micro-shard's product and the slots that it completes; the last one makes C, the others a slot.
  struct Leaf {
    TilePart<T> part{};
    std::array<Rows<const T>, kLevels> slots{};
  };

  std::span<Leaf> leaves() { return std::span(leaves_).first(leaf_count_); }

  void plan(std::span<const Elements> samples, const Waiting* waiting, T* to, std::size_t level) {
    if (samples.size() == 1) {
      Leaf& leaf = leaves_[leaf_count_++];
      std::size_t count = 0;
      for (; waiting != nullptr; waiting = waiting->next) leaf.slots[count++] = waiting->slot;
      leaf.part = {samples.front() * rows_of_sample_,
                   {{nullptr, 0}, {to, kTileColumns<T>}, std::span(leaf.slots).first(count)}};
      return;
    }
    const auto half = static_cast<std::size_t>(first_half(std::ssize(samples)));
    plan(samples.first(half), nullptr, slots_[level], level + 1);
    const Waiting both{{slots_[level], kTileColumns<T>}, waiting};
    plan(samples.subspan(half), &both, to, level + 1);
  }

  void multiply_tiles() {
    std::array<TilePart<T>, kMostMicroShards> parts;
    for (std::size_t i = 0; i < leaf_count_; ++i) parts[i] = leaves_[i].part;
    pack(0, b_.rows);
    for (Elements row = 0; row < c_.rows; row += kTileRows) {
      const Elements rows = std::min<Elements>(kTileRows, c_.rows - row);
      parts[leaf_count_ - 1].sum.c = {c_.row(row) + column_, c_.columns};
      multiply_tile<T>({rows, columns_}, {a_.data + row, 1, a_.columns}, panel_, std::span(parts).first(leaf_count_));
      pulses_.worked(rows * columns_ * b_.rows);
    }
  }

  void multiply_blocks() {
    for (row_ = 0; row_ < c_.rows; row_ += kBlockRows) {
      rows_ = std::min(kBlockRows, c_.rows - row_);
      Elements first = 0;
      for (const Leaf& leaf : leaves()) {
        multiply_block(leaf, first);
        first += leaf.part.depth;
      }
    }
  }

  // A micro-shard in pieces of the inner dimension: earlier ones go to a slot of their own, to which the last is added.
  void multiply_block(const Leaf& leaf, Elements first) {
    const Elements depth = leaf.part.depth, whole = block_depth(depth);
    const Rows<T> earlier{slots_[kLevels], kTileColumns<T>};
    const Rows<T> c = leaf.part.sum.c.data ? leaf.part.sum.c : Rows<T>{c_.row(row_) + column_, c_.columns};
    Sum<T> sum{{nullptr, 0}, earlier};
    Elements k = 0;
    for (; k + whole < depth; k += whole) {
      multiply_steps({first + k, whole}, sum);
      sum.start = {earlier.data, earlier.row};
    }
    multiply_steps({first + k, depth - k}, {sum.start, c, leaf.part.sum.more});
  }

  struct Steps {
    Elements first, count;
  };

  void multiply_steps(Steps steps, const Sum<T>& sum) {
    pack(steps.first, steps.count);
    for (Elements i = 0; i < rows_; i += kTileRows) {
      const auto moved = [i](auto rows) {
        if (rows.data) rows.data += i * rows.row;
        return rows;
      };
      std::array<Rows<const T>, kLevels> slots;
      std::ranges::transform(sum.more, slots.begin(), moved);
      const Elements rows = std::min<Elements>(kTileRows, rows_ - i);
      multiply_tile<T>({rows, steps.count, columns_}, {a_.row(steps.first) + row_ + i, 1, a_.columns}, panel_,
                       {moved(sum.start), moved(sum.c), std::span(slots).first(sum.more.size())});
      pulses_.worked(rows * columns_ * steps.count);
    }
  }

  void pack(Elements first, Elements depth) {
    pack_rows<T>(depth, columns_, {b_.row(first) + column_, b_.columns}, panel_);
  }

  Matrix<const T> a_, b_;
  Matrix<T> c_;
  Elements rows_of_sample_;
  Pulses& pulses_;
  Elements row_ = 0, rows_ = 0, column_ = 0, columns_ = 0;  // of C: the block
  std::array<Leaf, kMostMicroShards> leaves_;
  std::size_t leaf_count_ = 0;
  alignas(64) T panel_[kDepth * kTileColumns<T>];
  alignas(64) T slots_[kLevels + 1][kBlockRows * kTileColumns<T>];
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
