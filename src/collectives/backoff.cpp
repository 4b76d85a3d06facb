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

constexpr int kShare = 64;  // a patient nap is at most this part of the wait, so that it is never missed much
constexpr microseconds kWakingUp{50};  // what a nap may end late: before a known event the core is only lent

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
  const Instant now = Clock::now();
  if (sleeps == 1) sharpen_timer(), asleep_since_ = now;
  if (next_event - now <= kWakingUp) {
    sched_yield();
    return;
  }
  auto wish = limits.first_sleep * std::min(sleeps, 16);
  if (kind_ == Kind::patient) {
    wish = std::max(limits.first_sleep, std::chrono::duration_cast<microseconds>(now - asleep_since_) / kShare);
  }
  std::this_thread::sleep_until(std::min(now + std::min(wish, limits.longest_sleep), next_event - kWakingUp));
}

void sharpen_timer() { prctl(PR_SET_TIMERSLACK, 1UL); }

}  // namespace annulet::collectives
