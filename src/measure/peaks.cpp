#include "annulet/measure/peaks.hpp"

#include <algorithm>
#include <array>

namespace annulet::measure {
namespace {

#if defined(__AVX512F__)
constexpr std::size_t kVectorBytes = 64;
#elif defined(__AVX__)
constexpr std::size_t kVectorBytes = 32;
#else
constexpr std::size_t kVectorBytes = 16;
#endif

using Vector = float __attribute__((vector_size(kVectorBytes)));

// Two FMA units of latency 4 need 8 chains, of latency 5 need 10; with both operands 14 of the 16 registers there are.
constexpr std::size_t kChains = 12;
constexpr int kSteps = 2000;  // of a burst: tens of microseconds
constexpr double kFlops = 2.0 * kSteps * kChains * (kVectorBytes / sizeof(float));

// Each chain tends to addend / (1 - factor): no overflow, no denormals. The compiler knows neither operand.
Seconds burst(float factor, float addend) {
  const Vector x = factor - Vector{}, y = addend - Vector{};
  std::array<Vector, kChains> chains;
  chains.fill(y);
  const Instant start = Clock::now();
  // Here and below: nothing is computed before the first look at the clock, or left out before the second.
  asm volatile("" : "+m"(chains) : : "memory");
  for (int step = 0; step < kSteps; ++step) {
#pragma GCC unroll 12
    for (Vector& chain : chains) chain = chain * x + y;
  }
  asm volatile("" : "+m"(chains) : : "memory");
  return Clock::now() - start;
}

}  // namespace

FlopRate fma_peak(Seconds budget) {
  volatile float factor = 0.75F, addend = 0.5F;
  Seconds best = burst(factor, addend);
  for (const Instant start = Clock::now(); Clock::now() - start < budget;) best = std::min(best, burst(factor, addend));
  return Flops(kFlops) / best;
}

}  // namespace annulet::measure
