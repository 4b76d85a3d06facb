#pragma once
// Ranks inside one process, for unit tests and race checkers. Sends are rendezvous: one completes when its receive is
// there, the strictest behaviour an MPI may show. Any number of threads, one per rank at a time.
#include <memory>

#include "annulet/comm/transport.hpp"

namespace annulet::comm {

class InProcessNetwork {
 public:
  explicit InProcessNetwork(int world, int tag_count = 1 << 15);
  ~InProcessNetwork();

  // The transport of one rank; the network must outlive it.
  std::unique_ptr<Transport> connect(int rank);

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace annulet::comm
