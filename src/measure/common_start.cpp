#include "common_start.hpp"

#include <sched.h>

#include <algorithm>

namespace annulet::measure {
namespace {

constexpr Seconds kLongest{2e-3};  // window: one agreement that was held up must not make all rounds long

Seconds by_clock(Instant instant) { return instant.time_since_epoch(); }

}  // namespace

double CommonStart::proposal() {
  asked_ = Clock::now();
  return (by_clock(asked_) - ahead_ + window_).count();
}

void CommonStart::wait(double agreed) {
  window_ = std::min(2 * Seconds(Clock::now() - asked_), kLongest);
  while (by_clock(Clock::now()) - ahead_ < Seconds(agreed)) sched_yield();
}

}  // namespace annulet::measure
