#include "nn/blas.hpp"

namespace annulet::nn {

void use_one_blas_thread() {}

}  // namespace annulet::nn
