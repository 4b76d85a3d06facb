#pragma once
// Transport over MPI point-to-point: Isend, Irecv and one Testsome over a dense array of requests.
// A message that is too long for one of MPI's (counts are ints) goes as several pieces, matched in order.
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "annulet/comm/communicator.hpp"
#include "annulet/comm/transport.hpp"

namespace annulet::comm {

// Bytes of the pieces of a message, the same at both ends.
struct Pieces {
  std::int64_t most = std::numeric_limits<int>::max();  // lowered in tests
  std::int64_t eager = 0;                               // where kEagerPieces of them hold the message; 0: as `most`
};

struct MpiTransportOptions {
  Pieces pieces{};
  std::vector<Pieces> pieces_by_peer{};             // [rank]; empty: `pieces`
  int most_tags = std::numeric_limits<int>::max();  // tags used at most, below MPI_TAG_UB in any case
};

// Eager pieces, where they are quicker (see eager_limit.hpp): over shared memory for messages of a few pieces, over TCP
// for all. Open MPI's TCP moves larger ones by "put", and the notes that steer a put wait behind the data of the other
// direction: two ranks that send to each other then share the rate of one (57 of 118 MB/s each way at 1 Gb/s).
// Collective.
MpiTransportOptions options_for_links(const Communicator& communicator);

std::unique_ptr<Transport> make_mpi_transport(const Communicator& communicator,
                                              const MpiTransportOptions& options = {});

}  // namespace annulet::comm
