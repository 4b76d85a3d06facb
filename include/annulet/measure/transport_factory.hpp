#pragma once
// How a probe gets the link it measures: the same stack of transports that training will use, emulation included.
#include <functional>
#include <memory>

#include "annulet/comm/transport.hpp"

namespace annulet::measure {

// A new transport at each call; an empty pointer where there is one rank and nothing to send over.
using TransportFactory = std::function<std::unique_ptr<comm::Transport>()>;

}  // namespace annulet::measure
