#pragma once
// Transport over MPI point-to-point: Isend, Irecv and one Testsome over a dense array of requests.
// A message of more than `most_bytes` (MPI counts are ints) goes as several, matched in order.
#include <cstdint>
#include <limits>
#include <memory>

#include "annulet/comm/communicator.hpp"
#include "annulet/comm/transport.hpp"

namespace annulet::comm {

struct MpiTransportOptions {
  std::int64_t most_bytes = std::numeric_limits<int>::max();  // in one MPI message; lowered in tests
  int most_tags = std::numeric_limits<int>::max();            // tags used at most, below MPI_TAG_UB in any case
};

std::unique_ptr<Transport> make_mpi_transport(const Communicator& communicator,
                                              const MpiTransportOptions& options = {});

}  // namespace annulet::comm
