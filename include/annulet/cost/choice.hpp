#pragma once
// Which algorithm, in segments of which length, a collective should be run by: the one that is predicted to end first.
// The same answer for the same input: it depends on a network from a file or from the constants below, never on a
// measurement at start-up, so that the same run sums in the same order tomorrow.
#include <span>
#include <vector>

#include "annulet/cost/network.hpp"
#include "annulet/schedule/gradient_plan.hpp"

namespace annulet::cost {

// A collective that all ranks begin at once.
struct Task {
  schedule::Collective collective = schedule::Collective::all_reduce;
  Elements elements = 0;
  Bytes element{4};  // under way
  int world = 1;
  int root = 0;

  Bytes bytes() const { return element * elements; }
};

// From the beginning until the last rank has ended: by simulation of the plans of all ranks; by the closed form on the
// ring's link where they have more than `most_simulated` steps.
Seconds task_time(const Task& task, const schedule::Execution& execution, const Network& network,
                  std::size_t most_simulated = 200'000);

struct PricedExecution {
  schedule::Execution execution;
  Seconds time{0};
};

// The algorithms of the collective in the segments that suit them best, the fastest first; of equal ones the first of
// the registry. Direct for up to 8 ranks: the model knows no port at the receiver, where its messages meet, between
// nodes only its core. Segments of 64 KiB, 512 KiB or 4 MiB; slots for what is under way during a latency and two more.
// By the constants of shared memory below, whose cores copy what they add and whose caches the model does not know:
// segments of up to 512 KiB where all ranks' bytes under way take more than the 16 MiB that their cores' cache is taken
// to hold; and of vectors above 512 KiB on up to 8 ranks all-reduces and reduce-scatters by direct alone, which reads
// and writes each sum once.
std::vector<PricedExecution> priced_executions(const Task& task, const Network& network);

// The first of them, but what `ranges` says where they hold the size.
PricedExecution cheapest_execution(const Task& task, const Network& network,
                                   const std::vector<schedule::ExecutionRange>& ranges = {});

// The cheapest all-reduce of every bucket that a layout has, as ranges of their sizes; but what `preferred` says where
// it holds a size.
std::vector<schedule::ExecutionRange> bucket_executions(std::span<const Elements> tensors, Bytes element, int world,
                                                        const schedule::SyncOptions& sync, const Network& network,
                                                        const std::vector<schedule::ExecutionRange>& preferred = {});

// Where no machine file says otherwise: between nodes ten-gigabit Ethernet, and inside one shared memory, whose figures
// are of the order of what two ranks reach over Open MPI 4.1 on cores of one package: messages of up to 8 KiB go at
// once, in pieces (comm/eager_limit.hpp), larger ones are asked for and copied by the cores that also add.
Link assumed_link();
Network assumed_network(std::vector<int> node);

}  // namespace annulet::cost
