#include "common_start.hpp"

#include <sched.h>

#include <algorithm>

namespace annulet::measure {
namespace {

constexpr double kHeldUp = 4;  // quickest agreements

Seconds by_clock(Instant instant) { return instant.time_since_epoch(); }

}  // namespace

double CommonStart::proposal() {
  asked_ = Clock::now();
  return (by_clock(asked_) - ahead_ + window_).count();
}

void CommonStart::wait(double agreed) {
  const Seconds took = Clock::now() - asked_;
  quickest_ = std::min(quickest_, took);
  window_ = 2 * std::min(took, kHeldUp * quickest_);
  while (by_clock(Clock::now()) - ahead_ < Seconds(agreed)) sched_yield();
}

}  // namespace annulet::measure
