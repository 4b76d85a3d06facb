#pragma once
// The system's BLAS, through Eigen's own mechanism, for products that it is good at. It packs both operands anew in
// every call, which only large products repay; each function returns false, and does nothing, where the tile of
// kernel.hpp is to do it: always in blas_none.cpp, for small products in blas_system.cpp (ANNULET_BLAS).
#include "annulet/nn/model.hpp"
#include "nn/matrix.hpp"

namespace annulet::nn::blas {

extern const char* const kName;  // "own", or "own and BLAS"

// As the functions of product.hpp.
template <class T>
bool multiply_forward(Matrix<const T> x, Matrix<const T> w, const T* bias, Matrix<T> y, Progress& progress);
template <class T>
bool multiply_backward(Matrix<const T> dy, Matrix<const T> w, Matrix<T> dx, Progress& progress);
template <class T>
bool multiply_outer(Matrix<const T> dy, Matrix<const T> x, Matrix<T> dw, Accumulate accumulate, Progress& progress);

// Ranks are the parallelism: a BLAS that starts threads of its own is told to use one.
void prepare();

}  // namespace annulet::nn::blas
