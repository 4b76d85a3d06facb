#pragma once
// How a thread that has nothing to do until a message arrives gives the core away.
#include "annulet/base/units.hpp"

namespace annulet::collectives {

// Of a thread that waits and has nothing else to do, so that latency counts: look again a few times, let others run,
// then sleep for a little longer each time, but never past the next known event: shortly before it, only others that
// want the core get it.
class Backoff {
 public:
  void reset() { misses_ = 0; }
  void pause(Instant next_event);

 private:
  int misses_ = 0;
  Instant asleep_since_{};
};

// Of a progress thread, which may share its core with one that computes: a few looks, then naps, each a little longer,
// not past the next known event. A thread that was helped has no core of its own: for a while the computing thread then
// does the work at its pulses, and the naps are long, since each waking up costs that thread more than it takes.
class Naps {
 public:
  void reset() { misses_ = 0; }  // something moved
  void help();                   // somebody else stepped meanwhile
  bool helped() const { return helped_ > 0; }

  // When to look again; now, or earlier, is at once.
  Instant next_look(Instant next_event);

 private:
  int misses_ = 0;
  int helped_ = 0;  // looks for which the help is remembered
};

// Sleeps of this thread end on time, not up to 50 us late.
void sharpen_timer();

}  // namespace annulet::collectives
