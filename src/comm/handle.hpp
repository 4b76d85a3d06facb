#pragma once
// What a communicator holds: an MPI_Comm that is freed with the last copy, but not while an exception is in flight,
// since MPI_Comm_free is collective and the other ranks are elsewhere.
#include <mpi.h>

#include "annulet/comm/communicator.hpp"

namespace annulet::comm {

struct Communicator::Handle {
  explicit Handle(MPI_Comm communicator);
  ~Handle();
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  MPI_Comm comm;
  int rank = 0, size = 1;
  Seconds deadline{300};
};

struct CommunicatorAccess {
  static Communicator wrap(MPI_Comm communicator);
  static MPI_Comm native(const Communicator& communicator);
  static Seconds deadline(const Communicator& communicator);
};

}  // namespace annulet::comm
