#pragma once
// The one public header that includes <mpi.h>: for those who hand Annulet a communicator of their own.
#include <mpi.h>

#include <string_view>

#include "annulet/comm/communicator.hpp"

namespace annulet::comm {

// A duplicate of `communicator`, so that Annulet's messages never meet the caller's. Collective over it.
Communicator duplicate(MPI_Comm communicator);

// The handle inside; MPI_COMM_NULL for a null communicator.
MPI_Comm native(const Communicator& communicator);

// Throws RunError with MPI's own text unless `code` is MPI_SUCCESS.
void check(int code, std::string_view call);

}  // namespace annulet::comm
