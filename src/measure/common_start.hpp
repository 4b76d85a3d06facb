#pragma once
// Ranks that begin a round at one instant. After a barrier they go one after the other, as long apart as waking up
// takes, and the first one's time has the last one's coming in it; so they agree on an instant a little later than all
// of them (window-based synchronisation: Hunold and Carpen-Amarie 2016, arXiv:1505.07734). A rank's round is
//   start.wait(the largest of all ranks' start.proposal())
#include "annulet/base/units.hpp"

namespace annulet::measure {

class CommonStart {
 public:
  // How far this rank's clock is ahead, as ClockOffset; ranks of one host have one clock.
  void set_ahead(Seconds ahead) { ahead_ = ahead; }

  // When this rank would begin, in seconds by rank 0's clock.
  double proposal();

  // Returns at what was agreed on, or at once if that has passed. Lends its core until then.
  void wait(double agreed);

 private:
  Seconds ahead_{0};
  Instant asked_{};
  Seconds quickest_ = Seconds::max();  // agreement so far
  Seconds window_{0};                  // twice what the last one took, unless that was held up
};

}  // namespace annulet::measure
