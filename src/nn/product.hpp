#pragma once
// The three matrix products of a Linear layer, W [out, in]. Large products are cut into panels of about 32 MFLOP
// (a fraction of a millisecond) with a pulse() after each. The cut depends on the shapes only, never on who listens,
// and the cache sizes that Eigen blocks for are constants, so that the bits of a product are the same on every machine
// with the same instruction set. No call allocates: the blocks at work lie on the stack (up to 5 MiB of it).
#include "annulet/nn/model.hpp"
#include "nn/matrix.hpp"

namespace annulet::nn {

// y [B, out] = x [B, in] W^T + bias [out]
template <class T>
void multiply_forward(Matrix<const T> x, Matrix<const T> w, const T* bias, Matrix<T> y, Progress& progress);

// dx [B, in] = dy [B, out] W
template <class T>
void multiply_backward(Matrix<const T> dy, Matrix<const T> w, Matrix<T> dx, Progress& progress);

// dw [out, in] = (or +=) dy^T x; B = 0 overwrites with zeros.
template <class T>
void multiply_outer(Matrix<const T> dy, Matrix<const T> x, Matrix<T> dw, Accumulate accumulate, Progress& progress);

// Called once before the first product: fixes Eigen's blocking, and the number of BLAS threads to one.
void prepare_products();

}  // namespace annulet::nn
