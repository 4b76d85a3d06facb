#include "nn/blas.hpp"

namespace annulet::nn::blas {

const char* const kName = "own";

template <class T>
bool multiply_forward(Matrix<const T>, Matrix<const T>, const T*, Matrix<T>, Progress&) {
  return false;
}

template <class T>
bool multiply_backward(Matrix<const T>, Matrix<const T>, Matrix<T>, Progress&) {
  return false;
}

template <class T>
bool multiply_outer(Matrix<const T>, Matrix<const T>, Matrix<T>, Accumulate, Progress&) {
  return false;
}

void prepare() {}

#define ANNULET_INSTANTIATE(T)                                                                         \
  template bool multiply_forward<T>(Matrix<const T>, Matrix<const T>, const T*, Matrix<T>, Progress&); \
  template bool multiply_backward<T>(Matrix<const T>, Matrix<const T>, Matrix<T>, Progress&);          \
  template bool multiply_outer<T>(Matrix<const T>, Matrix<const T>, Matrix<T>, Accumulate, Progress&);
ANNULET_INSTANTIATE(float)
ANNULET_INSTANTIATE(double)
#undef ANNULET_INSTANTIATE

}  // namespace annulet::nn::blas
