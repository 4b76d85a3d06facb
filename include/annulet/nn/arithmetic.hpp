#pragma once
// What the bits of a result depend on besides the program and its input: the compiler, the instruction set that it
// compiled for, those that the C library chooses by, and whose matrix products are used.
#include <string>

namespace annulet::nn {

// "compiled by 12.2.0 for AVX512, FMA, ..., on avx2 fma avx512f, products: own"
std::string arithmetic();

// "AVX512, products: own"
std::string short_arithmetic();

}  // namespace annulet::nn
