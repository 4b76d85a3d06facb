#include "backoff.hpp"

#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <thread>

namespace annulet::collectives {
namespace {

using std::chrono::microseconds;

struct Limits {
  int spins;   // look again at once
  int yields;  // let others run
  microseconds first_sleep, longest_sleep;
};

constexpr Limits kPatient{50, 2000, microseconds(20), microseconds(100)};
constexpr Limits kBackground{3, 0, microseconds(20), microseconds(250)};

}  // namespace

void Backoff::pause(Instant next_event) {
  const Limits& limits = kind_ == Kind::patient ? kPatient : kBackground;
  ++misses_;
  if (misses_ <= limits.spins) return;
  const int sleeps = misses_ - limits.spins - limits.yields;
  if (sleeps <= 0) {
    sched_yield();
    return;
  }
  const auto wish = std::min(limits.first_sleep * std::min(sleeps, 16), limits.longest_sleep);
  std::this_thread::sleep_until(std::min(Clock::now() + wish, next_event));
}

void sharpen_timer() { prctl(PR_SET_TIMERSLACK, 1UL); }

}  // namespace annulet::collectives
