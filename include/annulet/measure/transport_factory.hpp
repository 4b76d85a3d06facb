#pragma once
// How a probe gets the link it measures: the same stack of transports that training will use, emulation included.
#include <functional>
#include <memory>
#include <optional>

#include "annulet/comm/communicator.hpp"
#include "annulet/comm/emulated.hpp"
#include "annulet/comm/transport.hpp"

namespace annulet::measure {

// A new transport at each call; an empty pointer where there is one rank and nothing to send over.
using TransportFactory = std::function<std::unique_ptr<comm::Transport>()>;

// MPI over the communicator (in memory for a world of one), with the emulated link on top if there is one. Collective.
TransportFactory transport_over(const comm::Communicator& communicator,
                                const std::optional<comm::EmulatedLink>& link = std::nullopt);

}  // namespace annulet::measure
