#include "annulet/nn/arithmetic.hpp"

#include <Eigen/Core>

#include "nn/blas.hpp"

namespace annulet::nn {
namespace {

std::string cpu_features() {
  std::string text;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2")) text += " avx2";
  if (__builtin_cpu_supports("fma")) text += " fma";
  if (__builtin_cpu_supports("avx512f")) text += " avx512f";
#endif
  return text;
}

}  // namespace

std::string arithmetic() {
  const std::string cpu = cpu_features();
  return std::string("compiled by " __VERSION__ " for ") + Eigen::SimdInstructionSetsInUse() +
         (cpu.empty() ? "" : ", on" + cpu) + ", products: " + blas::kName;
}

std::string short_arithmetic() {
  const std::string sets = Eigen::SimdInstructionSetsInUse();
  return sets.substr(0, sets.find(',')) + ", products: " + blas::kName;
}

}  // namespace annulet::nn
