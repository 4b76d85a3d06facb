#pragma once
// The system's BLAS; only with ANNULET_BLAS.

namespace annulet::nn {

// Ranks are the parallelism: a BLAS that starts its own threads is told to use one.
void use_one_blas_thread();

}  // namespace annulet::nn
