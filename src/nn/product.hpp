#pragma once
// The three matrix products of a Linear layer, W [out, in], with a pulse() after about every 32 MFLOP (a fraction of a
// millisecond) of a product; where the pulses fall depends on the shapes only. No call allocates: blocks lie on the
// stack. They are made of the tile of kernel.hpp: an element is the sum, in order, of what is added to, and of blocks
// of at most 192 multiply-adds over the inner dimension, in order. So its bits depend on the inner dimension and on
// whether the CPU has FMA, and not on the other dimensions, on its place, on alignment or on caches. With ANNULET_BLAS
// large products go to the system's BLAS instead (blas.hpp), whose bits are its own matter.
#include "annulet/nn/model.hpp"
#include "nn/matrix.hpp"

namespace annulet::nn {

enum class Products { fastest, own };  // own: not the BLAS's, which may depend on the number of rows

// y [B, out] = x [B, in] W^T + bias [out]; a null bias adds nothing
template <class T>
void multiply_forward(Matrix<const T> x, Matrix<const T> w, const T* bias, Matrix<T> y, Progress& progress,
                      Products products = Products::fastest);

// dx [B, in] = dy [B, out] W
template <class T>
void multiply_backward(Matrix<const T> dy, Matrix<const T> w, Matrix<T> dx, Progress& progress,
                       Products products = Products::fastest);

// dw [out, in] = (or +=) dy^T x; B = 0 overwrites with zeros.
template <class T>
void multiply_outer(Matrix<const T> dy, Matrix<const T> x, Matrix<T> dw, Accumulate accumulate, Progress& progress);

// Samples of each micro-shard, at most kMostMicroShards of them, together the rows.
struct MicroShards {
  std::span<const Elements> samples;
  Elements rows_of_sample = 1;
};

// dw [out, in] = the sum in the fixed tree of micro-shards (base/sum_tree.hpp) of the product of each. Small ones are
// added while they are in the first-level cache: eight of 8 rows cost about 1.4 times 64 rows as one.
template <class T>
void multiply_outer(Matrix<const T> dy, Matrix<const T> x, Matrix<T> dw, MicroShards micro_shards, Progress& progress);

// Called before the first product: a BLAS is told to use one thread.
void prepare_products();

}  // namespace annulet::nn
