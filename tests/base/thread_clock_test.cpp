#include "annulet/base/thread_clock.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace annulet {
namespace {

TEST(ThreadClock, StandsStillWhileTheThreadWaits) {
  const Seconds before = thread_computed();
  std::this_thread::sleep_for(Seconds(0.03));
  EXPECT_LT(thread_computed() - before, Seconds(0.02));
}

TEST(ThreadClock, AdvancesWhileTheThreadComputes) {
  const Seconds before = thread_computed();
  const Instant begin = Clock::now();
  while (thread_computed() - before < Seconds(0.002) && Clock::now() - begin < Seconds(10)) {
  }
  EXPECT_GE(thread_computed() - before, Seconds(0.002));
}

}  // namespace
}  // namespace annulet
