#pragma once
// A stepped collective really run by the engine, round by round, in this process or on the ranks of an MPI world: what
// was in the buffers, what the transport counted, and whether it is what it should be.
#include "annulet/comm/communicator.hpp"
#include "annulet/report/collective_drawing.hpp"
#include "ring_collective.hpp"

namespace annulet::cli {

// What a rank brings: 10 (rank + 1) + element modulo 10, whose sums are exact whatever the order.
std::vector<float> example_input(int rank, Elements elements);

// How the result compares with another sum of the same vectors.
enum class Agreement { same_bits, rounding };

struct RingRun {
  report::ReplayValues values;  // of all ranks; under MPI on rank 0 only
  Agreement agreement;          // with a plain sum in rank order, or with MPI_Allreduce
  Bytes counted{0};             // by the transports of all ranks
};

// All of them also run the plans in one go, as the engine does otherwise, and demand the same bits. They throw RunError
// (the second AgreedError) where results, or bytes counted and those of `replay`, differ by more than rounding.
RingRun run_here(const SteppedCollective& stepped, const report::Replay& replay,
                 const std::vector<std::vector<float>>& inputs);
RingRun run_on_world(const comm::Communicator& world, Seconds deadline, const SteppedCollective& stepped,
                     const report::Replay& replay, std::vector<float> input);

}  // namespace annulet::cli
