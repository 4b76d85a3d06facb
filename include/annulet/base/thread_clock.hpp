#pragma once
// What a thread has had of a core.
#include <ctime>

#include "annulet/base/units.hpp"

namespace annulet {

// Time that this thread has computed; it stands still while the thread waits or others have the core. Any origin.
inline Seconds thread_computed() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return Seconds(static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec));
}

}  // namespace annulet
