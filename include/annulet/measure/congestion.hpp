#pragma once
// Which congestion control the TCP of a host uses. With BBR what is predicted between nodes does not hold: it takes
// pauses between collectives for the rate of the network, and every ten seconds it rests for 200 ms to measure a
// latency (Cardwell et al. 2016). Seen among four hosts at 200 Mb/s: all-gathers of 4 MiB by bruck 31 % longer than
// predicted, without it 5 %.
#include <string>
#include <vector>

#include "annulet/comm/communicator.hpp"

namespace annulet::measure {

// "cubic", "bbr", as Linux says; empty where nothing does.
std::string congestion_control();

// What to know where any rank's host, [rank], uses BBR of any version; else empty.
std::string congestion_warning(const std::vector<std::string>& controls);

// The same on every rank; empty where all are on one node, which needs no TCP. Whether MPI goes by TCP between nodes is
// not known here.
std::string congestion_warning(const comm::Communicator& communicator);

}  // namespace annulet::measure
