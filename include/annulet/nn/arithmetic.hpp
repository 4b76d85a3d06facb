#pragma once
// What the bits of a result depend on besides the program and its input: the instruction set that it was compiled for,
// those that the C library chooses by, and whose matrix products are used.
#include <string>

namespace annulet::nn {

// "AVX512, FMA, ...; CPU avx2 fma avx512f; own products"
std::string arithmetic();

}  // namespace annulet::nn
