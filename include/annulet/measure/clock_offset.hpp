#pragma once
// How far each rank's clock is ahead of rank 0's, to put their events on one time line (Cristian 1989): a rank asks
// rank 0 for its time and takes the answer for the middle of the exchange. Of several exchanges the quickest counts;
// its error is at most half its duration. The steady clocks of processes on one host are one clock: about 0 there.
#include "annulet/measure/transport_factory.hpp"

namespace annulet::measure {

struct ClockOffset {
  Seconds ahead{0};        // rank 0's time = this rank's Clock::now() - ahead
  Seconds uncertainty{0};  // half the quickest exchange
};

// Collective, while no engine runs; over the real transport, not an emulated one, whose latency would only blur it.
// One rank after the other, 2 `exchanges` messages each. Throws RunError if nothing comes from a rank for `deadline`.
ClockOffset clock_offset(const TransportFactory& make_transport, int exchanges = 16, Seconds deadline = Seconds(300));

}  // namespace annulet::measure
