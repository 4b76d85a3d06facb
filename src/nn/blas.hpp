#pragma once
// The system's BLAS, if Annulet was built with ANNULET_BLAS: CMake chooses blas_system.cpp or blas_none.cpp.

namespace annulet::nn {

// Ranks are the parallelism: a BLAS that starts its own threads is told to use one.
void use_one_blas_thread();

}  // namespace annulet::nn
