#include "annulet/measure/transport_factory.hpp"

#include "annulet/comm/in_process.hpp"
#include "annulet/comm/mpi_transport.hpp"

namespace annulet::measure {

TransportFactory transport_over(const comm::Communicator& communicator, const std::optional<comm::EmulatedLink>& link) {
  TransportFactory real;
  if (communicator.size() > 1) {
    real = [communicator, options = comm::options_for_links(communicator)] {
      return comm::make_mpi_transport(communicator, options);
    };
  } else {
    real = [] {
      static comm::InProcessNetwork alone(1);
      return alone.connect(0);
    };
  }
  if (!link) return real;
  return [real, link = *link] { return comm::emulate(real(), link); };
}

}  // namespace annulet::measure
