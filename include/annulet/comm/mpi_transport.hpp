#pragma once
// Transport over MPI point-to-point: Isend, Irecv and one Testsome over a dense array of requests.
// A message of more than `most_bytes` (MPI counts are ints) goes as several pieces, matched in order.
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "annulet/comm/communicator.hpp"
#include "annulet/comm/transport.hpp"

namespace annulet::comm {

struct MpiTransportOptions {
  std::int64_t most_bytes = std::numeric_limits<int>::max();  // in one MPI message; lowered in tests
  std::vector<std::int64_t> most_bytes_by_peer{};             // [rank], the same at both ends; empty: most_bytes
  int most_tags = std::numeric_limits<int>::max();            // tags used at most, below MPI_TAG_UB in any case
};

// Pieces that go eagerly to peers that are reached over TCP. Open MPI's TCP moves larger ones by "put", and the notes
// that steer a put wait behind the data of the other direction: two ranks that send to each other then share the rate
// of one (57 of 118 MB/s each way at 1 Gb/s). Eager pieces need no notes. Collective.
MpiTransportOptions options_for_links(const Communicator& communicator);

std::unique_ptr<Transport> make_mpi_transport(const Communicator& communicator,
                                              const MpiTransportOptions& options = {});

}  // namespace annulet::comm
