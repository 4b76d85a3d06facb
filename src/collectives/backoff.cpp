#include "backoff.hpp"

#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <thread>

namespace annulet::collectives {
namespace {

using std::chrono::microseconds;

constexpr int kSpins = 50;     // look again at once
constexpr int kYields = 2000;  // let others run
constexpr microseconds kFirstSleep{20}, kLongestSleep{100};
constexpr int kShare = 64;             // a sleep is at most this part of the wait, so that it is never missed much
constexpr microseconds kWakingUp{50};  // what a sleep may end late: before a known event the core is only lent

constexpr int kLooks = 3;
constexpr microseconds kFirstNap{20}, kLongestNap{250}, kHelpedNap{2000};
constexpr int kHelpRemembered = 4;

}  // namespace

void Backoff::pause(Instant next_event) {
  ++misses_;
  if (misses_ <= kSpins) return;
  const int sleeps = misses_ - kSpins - kYields;
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
  const auto wish = std::max(kFirstSleep, std::chrono::duration_cast<microseconds>(now - asleep_since_) / kShare);
  std::this_thread::sleep_until(std::min(now + std::min(wish, kLongestSleep), next_event - kWakingUp));
}

void Naps::help() { helped_ = kHelpRemembered; }

Instant Naps::next_look(Instant next_event) {
  if (helped_ > 0) {
    --helped_;
    return Clock::now() + kHelpedNap;
  }
  if (++misses_ <= kLooks) return {};
  return std::min(Clock::now() + std::min(kFirstNap * std::min(misses_ - kLooks, 16), kLongestNap), next_event);
}

void sharpen_timer() { prctl(PR_SET_TIMERSLACK, 1UL); }

}  // namespace annulet::collectives
