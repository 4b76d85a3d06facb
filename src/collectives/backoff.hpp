#pragma once
// How a thread that has nothing to do until a message arrives gives the core away: look again a few times, let others
// run, then sleep for a little longer each time, but never past the next known event: shortly before it, only others
// that want the core get it.
#include "annulet/base/units.hpp"

namespace annulet::collectives {

class Backoff {
 public:
  // `patient`: the thread that waits has nothing else to do and the latency counts, so it sleeps late.
  enum class Kind { patient, background };
  explicit Backoff(Kind kind) : kind_(kind) {}

  void reset() { misses_ = 0; }
  void pause(Instant next_event);

 private:
  Kind kind_;
  int misses_ = 0;
  Instant asleep_since_{};
};

// Sleeps of this thread end on time, not up to 50 us late.
void sharpen_timer();

// This thread, which runs briefly and often, gets its core soon after it wakes also where another one computes, by
// asking for short slices (Linux 6.12 and later; elsewhere it may have to wait for the end of the other one's slice,
// some milliseconds). It gets no larger share.
void ask_for_short_slices();

}  // namespace annulet::collectives
