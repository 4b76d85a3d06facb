#include "annulet/measure/cores.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <memory>

#include "annulet/base/error.hpp"

namespace annulet::measure {
namespace {

constexpr std::size_t kWordBits = 64;
constexpr std::size_t kMostThreads = std::size_t{1} << 20;

struct FreeCpuSet {
  void operator()(cpu_set_t* set) const { CPU_FREE(set); }
};
using CpuSet = std::unique_ptr<cpu_set_t, FreeCpuSet>;

// The hardware threads in the mask; the kernel refuses a set smaller than its own, so grow until it does not.
std::vector<std::size_t> hardware_threads() {
  for (std::size_t most = 1024; most <= kMostThreads; most *= 2) {
    const CpuSet set(CPU_ALLOC(most));
    const std::size_t bytes = CPU_ALLOC_SIZE(most);
    CPU_ZERO_S(bytes, set.get());
    if (sched_getaffinity(0, bytes, set.get()) != 0) {
      if (errno == EINVAL) continue;
      break;
    }
    std::vector<std::size_t> threads;
    for (std::size_t t = 0; t < most; ++t) {
      if (CPU_ISSET_S(t, bytes, set.get())) threads.push_back(t);
    }
    return threads;
  }
  throw RunError({fmt::format("the cores this process may use are unknown ({})", std::strerror(errno))});
}

// The first hardware thread of the same core; the thread itself where the system does not say.
std::size_t core_of(std::size_t thread) {
  std::ifstream siblings(fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", thread));
  std::size_t first = thread;
  return siblings >> first ? first : thread;
}

}  // namespace

CoreMask affinity_mask() {
  CoreMask mask;
  for (const std::size_t thread : hardware_threads()) {
    const std::size_t core = core_of(thread);
    mask.resize(std::max(mask.size(), core / kWordBits + 1));
    mask[core / kWordBits] |= static_cast<std::int64_t>(std::uint64_t{1} << (core % kWordBits));
  }
  return mask;
}

int count(std::span<const std::int64_t> mask) {
  int bits = 0;
  for (const std::int64_t word : mask) bits += std::popcount(static_cast<std::uint64_t>(word));
  return bits;
}

Cores cores_of_node(std::span<const std::int64_t> masks, std::size_t words, std::size_t mine, int threads_per_rank) {
  ANNULET_EXPECTS(words > 0 && masks.size() % words == 0 && mine < masks.size() / words && threads_per_rank > 0,
                  "every rank of the node has a mask");
  CoreMask all(words);
  for (std::size_t i = 0; i < masks.size(); ++i) all[i % words] |= masks[i];
  Cores cores;
  cores.in_mask = count(masks.subspan(mine * words, words));
  cores.ranks_on_node = static_cast<int>(masks.size() / words);
  cores.distinct_on_node = cores.distinct_total = count(all);
  cores.in_use_on_node = cores.in_use_total = std::min(cores.distinct_on_node, cores.ranks_on_node * threads_per_rank);
  return cores;
}

Cores find_cores(const comm::Communicator& communicator, int threads_per_rank) {
  CoreMask mask = affinity_mask();
  // Nodes may differ in size, but everybody gathers the same number of words.
  const auto words = static_cast<std::size_t>(-communicator.minimum(-static_cast<std::int64_t>(mask.size())));
  mask.resize(words);
  const std::vector<std::int64_t> all = communicator.all_gather(std::span<const std::int64_t>(mask));
  const std::vector<int> node = communicator.node_ranks();
  CoreMask masks;
  for (const int rank : node) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(rank) * words);
    masks.insert(masks.end(), first, first + static_cast<std::ptrdiff_t>(words));
  }
  const auto mine = static_cast<std::size_t>(std::find(node.begin(), node.end(), communicator.rank()) - node.begin());
  Cores cores = cores_of_node(masks, words, mine, threads_per_rank);
  const bool speaks = mine == 0;  // for its node
  cores.distinct_total = static_cast<int>(std::lround(communicator.sum(speaks ? cores.distinct_on_node : 0)));
  cores.in_use_total = static_cast<int>(std::lround(communicator.sum(speaks ? cores.in_use_on_node : 0)));
  return cores;
}

std::string binding_warning(const Cores& cores, int threads) {
  if (cores.in_mask >= threads) return {};
  return describe({fmt::format("{} threads of this rank share {} core(s)", threads, cores.in_mask),
                   "the launcher bound it to them, so computing and communicating take turns",
                   "Start with --bind-to none, or give each rank more cores (--map-by slot:PE=2)"});
}

}  // namespace annulet::measure
