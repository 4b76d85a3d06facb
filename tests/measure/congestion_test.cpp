#include "annulet/measure/congestion.hpp"

#include <gmock/gmock.h>

namespace annulet::measure {
namespace {

TEST(CongestionWarning, NamesTheFirstRankWhoseHostUsesBbr) {
  EXPECT_THAT(congestion_warning({"cubic", "bbr", "reno"}), testing::HasSubstr("rank 1's host uses BBR"));
  EXPECT_THAT(congestion_warning({"bbr3"}), testing::HasSubstr("rank 0's host uses BBR"));
}

TEST(CongestionWarning, IsSilentOfOthersAndOfHostsThatDoNotSay) {
  EXPECT_EQ(congestion_warning({"cubic", "reno", ""}), "");
}

}  // namespace
}  // namespace annulet::measure
