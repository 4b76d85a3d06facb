#include "annulet/measure/memory.hpp"

#include <cstring>
#include <vector>

#include "annulet/base/aligned.hpp"
#include "annulet/base/statistics.hpp"

namespace annulet::measure {
namespace {

constexpr std::size_t kBlock = std::size_t{8} << 20;  // beyond a core's own caches
constexpr std::size_t kPiece = std::size_t{32} << 10;
constexpr int kFewestCopies = 3;

}  // namespace

cost::SecondsPerByte copy_pace(Seconds budget) {
  AlignedVector<std::byte> from(kBlock), to(kBlock), between(kPiece);
  std::vector<Seconds> passes;
  const Instant start = Clock::now();
  while (passes.size() < kFewestCopies || Clock::now() - start < budget) {
    const Instant begin = Clock::now();
    for (std::size_t at = 0; at < kBlock; at += kPiece) {
      std::memcpy(between.data(), from.data() + at, kPiece);
      asm volatile("" : : "r"(between.data()) : "memory");  // nobody proves the detour away
      std::memcpy(to.data() + at, between.data(), kPiece);
    }
    passes.push_back(Clock::now() - begin);
  }
  return cost::SecondsPerByte(median(passes)->count() / (2.0 * static_cast<double>(kBlock)));
}

}  // namespace annulet::measure
