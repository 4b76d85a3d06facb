#include <gtest/gtest.h>

#include <vector>

#include "annulet/measure/peaks.hpp"
#include "annulet/measure/process.hpp"

namespace annulet::measure {
namespace {

// No machine that runs this is slower than a hundred million operations a second.
TEST(FmaPeak, IsAFiniteRate) {
  const FlopRate peak = fma_peak(Seconds(0.005));
  EXPECT_TRUE(peak.value() > 1e8 && peak.value() < 1e13) << to_text(peak);
}

TEST(PeakResident, GrowsWithMemoryThatIsTouchedAndDoesNotShrink) {
  const Bytes before = peak_resident();
  const std::size_t size = static_cast<std::size_t>(before.value()) + (std::size_t{16} << 20);
  { const std::vector<char> touched(size, 'x'); }
  EXPECT_GT(before, Bytes(0));
  EXPECT_GE(peak_resident(), Bytes(static_cast<std::int64_t>(size)));
}

}  // namespace
}  // namespace annulet::measure
