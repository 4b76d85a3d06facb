#pragma once
// A group of ranks. The default one is null: a world of one that never calls MPI. The blocking collectives here are for
// start-up and shutdown, while no engine is running; everything in between is an operation of the engine. They give up
// with RunError when a rank has not come within the deadline, and yield the core while they wait.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "annulet/base/units.hpp"

namespace annulet::comm {

class Communicator {
 public:
  Communicator() = default;

  int rank() const;
  int size() const;
  bool is_null() const { return handle_ == nullptr; }

  // For all copies of this communicator; 300 s unless set.
  void set_deadline(Seconds deadline) const;

  void barrier() const;
  void broadcast(std::span<std::byte> bytes, int root) const;
  std::string broadcast(const std::string& text, int root) const;
  double sum(double value) const;
  double maximum(double value) const;
  std::int64_t minimum(std::int64_t value) const;

  // Everybody's values in rank order, [size, values.size()]; the same number of values on each rank.
  std::vector<double> all_gather(std::span<const double> values) const;
  std::vector<std::int64_t> all_gather(std::span<const std::int64_t> values) const;
  std::vector<std::string> all_gather(const std::string& text) const;

  // On the root: each rank's bytes in rank order, lengths free. Elsewhere: empty.
  std::vector<std::vector<std::byte>> gather(std::span<const std::byte> bytes, int root) const;

  // The ranks that share this rank's node, in rank order (this one included).
  std::vector<int> node_ranks() const;

  // The node of each rank, [rank]; nodes are numbered from 0 in the order of their lowest ranks.
  std::vector<int> nodes() const;

  // The same ranks, one node after the other, so that a ring crosses each network card once; this communicator itself
  // if they stand so already. Rank 0 remains rank 0. Collective.
  Communicator by_node() const;

 private:
  struct Handle;
  friend struct CommunicatorAccess;
  std::shared_ptr<Handle> handle_;
};

}  // namespace annulet::comm
