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

// How messages are cut, in bytes, the same at both ends: those of up to `reach` into pieces of `eager`, others into
// pieces of `most`.
struct Pieces {
  std::int64_t most = std::numeric_limits<int>::max();  // lowered in tests
  std::int64_t eager = 0, reach = 0;                    // 0: no message is
};

struct MpiTransportOptions {
  Pieces pieces{};
  std::vector<Pieces> pieces_by_peer{};             // [rank]; empty: `pieces`
  int most_tags = std::numeric_limits<int>::max();  // tags used at most, below MPI_TAG_UB in any case
};

// Eager pieces, where they are quicker (see eager_limit.hpp): with Open MPI, over shared memory for short messages,
// over TCP for all. On one node settings in Open MPI's parameter files are not seen. Open MPI's TCP moves larger ones
// by "put", and the notes that steer a put wait behind the data of the other direction: two ranks that send to each
// other then share the rate of one (57 of 118 MB/s each way at 1 Gb/s). Collective.
MpiTransportOptions options_for_links(const Communicator& communicator);

std::unique_ptr<Transport> make_mpi_transport(const Communicator& communicator,
                                              const MpiTransportOptions& options = {});

}  // namespace annulet::comm
