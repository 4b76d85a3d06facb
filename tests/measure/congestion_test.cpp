#include "annulet/measure/congestion.hpp"

#include <gmock/gmock.h>

namespace annulet::measure {
namespace {

TEST(CongestionWarning, NamesTheFirstRankWhoseHostUsesBbr) {
  EXPECT_THAT(congestion_warning({"cubic", "bbr", "bbr"}), testing::HasSubstr("rank 1's host uses BBR"));
}

TEST(CongestionWarning, IsSilentOfOthersAndOfHostsThatDoNotSay) {
  EXPECT_EQ(congestion_warning({"cubic", "reno", ""}), "");
}

TEST(CongestionWarning, IsSilentOnOneNode) { EXPECT_EQ(congestion_warning(comm::Communicator{}), ""); }

}  // namespace
}  // namespace annulet::measure
