#include "annulet/measure/congestion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "annulet/base/error.hpp"

namespace annulet::measure {

std::string congestion_control() {
  std::string name;
  std::ifstream("/proc/sys/net/ipv4/tcp_congestion_control") >> name;
  return name;
}

std::string congestion_warning(const std::vector<std::string>& controls) {
  const auto first = std::ranges::find_if(controls, [](const std::string& name) { return name.starts_with("bbr"); });
  if (first == controls.end()) return {};
  return describe({fmt::format("TCP of rank {}'s host uses BBR", first - controls.begin()),
                   "it takes pauses between collectives for a slow network and rests for 200 ms every ten seconds, so "
                   "that predictions over TCP do not hold",
                   "Choose another congestion control on every host: sysctl net.ipv4.tcp_congestion_control=cubic"});
}

std::string congestion_warning(const comm::Communicator& communicator) {
  const std::vector<int> nodes = communicator.nodes();
  return std::ranges::max(nodes) == 0 ? "" : congestion_warning(communicator.all_gather(congestion_control()));
}

}  // namespace annulet::measure
