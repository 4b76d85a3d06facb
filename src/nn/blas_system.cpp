#include <dlfcn.h>

#include <initializer_list>

#include "nn/blas.hpp"

namespace annulet::nn {

// Found at run time, since which BLAS serves libblas.so is the system administrator's choice.
void use_one_blas_thread() {
  for (const char* name : {"openblas_set_num_threads", "MKL_Set_Num_Threads", "bli_thread_set_num_threads"}) {
    if (void* const symbol = dlsym(RTLD_DEFAULT, name)) reinterpret_cast<void (*)(int)>(symbol)(1);
  }
}

}  // namespace annulet::nn
