// Rounds that begin together, whatever the clocks say.
#include "measure/common_start.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace annulet::measure {
namespace {

Seconds now() { return Clock::now().time_since_epoch(); }

TEST(CommonStart, ProposesByTheClockOfRank0) {
  CommonStart here, there;
  there.set_ahead(Seconds(1000));
  EXPECT_NEAR(here.proposal() - there.proposal(), 1000, 1);
}

TEST(CommonStart, BeginsWhereAllHaveAgreed) {
  for (const double ahead : {0.0, 1000.0, -1000.0}) {
    CommonStart start;
    start.set_ahead(Seconds(ahead));
    const double agreed = start.proposal() + 0.01;
    start.wait(agreed);
    EXPECT_GE(now().count() - ahead, agreed);
    EXPECT_LT(now().count() - ahead, agreed + 5);  // a wrong sign would wait for 2000 s, or not at all
  }
}

// Agreeing took 10 ms, so the next round leaves at least twice that, counted from when it is asked for.
TEST(CommonStart, LeavesTimeForAgreeing) {
  CommonStart start;
  const double first = start.proposal();
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  start.wait(first);
  const double before = now().count();
  EXPECT_GE(start.proposal() - before, 0.02);
}

}  // namespace
}  // namespace annulet::measure
