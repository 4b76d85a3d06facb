#pragma once
// The cores that ranks may run on: from their affinity masks, since a launcher may have bound them to a few of those
// that the machine has. Hardware threads of one core count once. A container's quota of processor time is not seen
// here.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "annulet/comm/communicator.hpp"

namespace annulet::measure {

// Bit c of word c / 64 is core c (named by the first of its hardware threads).
using CoreMask = std::vector<std::int64_t>;

// Of the calling thread. Throws RunError if the system does not say.
CoreMask affinity_mask();

int count(std::span<const std::int64_t> mask);

struct Cores {
  int in_mask = 1;           // this rank's
  int distinct_on_node = 1;  // the union over the ranks of this node
  int ranks_on_node = 1;
  int distinct_total = 1;  // sum of distinct_on_node over nodes
  int in_use_on_node = 1;  // by computing: min(distinct_on_node, ranks_on_node x threads of a rank)
  int in_use_total = 1;    // sum of in_use_on_node over nodes; times fma_peak() this is the peak in use
};

// One node's part, from the masks of its ranks, [ranks, words]; totals as if there were no other node.
Cores cores_of_node(std::span<const std::int64_t> masks, std::size_t words, std::size_t mine, int threads_per_rank = 1);

// Collective over `communicator`, while no engine runs.
Cores find_cores(const comm::Communicator& communicator, int threads_per_rank = 1);

// What is wrong if a rank runs `threads` threads (its own and, with Driver::thread, the progress thread) on fewer
// cores; empty if nothing is.
std::string binding_warning(const Cores& cores, int threads);

}  // namespace annulet::measure
