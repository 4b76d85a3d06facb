#include "backoff.hpp"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
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
// struct sched_attr of the kernel, whose header does not go together with <sched.h>.
struct SchedulerWish {
  std::uint32_t size = 48;
  std::uint32_t policy = SCHED_OTHER;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime = 0, deadline = 0, period = 0;  // runtime: the slice
};
static_assert(sizeof(SchedulerWish) == 48);

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

void ask_for_short_slices() {
  constexpr std::uint64_t kNanoseconds = 100'000;  // the shortest there is
  const SchedulerWish wish{.nice = getpriority(PRIO_PROCESS, 0), .runtime = kNanoseconds};
  syscall(SYS_sched_setattr, 0, &wish, 0U);  // a wish: refused, nothing changes
}

}  // namespace annulet::collectives
