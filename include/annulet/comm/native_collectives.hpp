#pragma once
// MPI's own blocking collectives (MPI 4.0, chapter 6), to set beside ours: sums or maxima of numbers on the same
// chunks. The caller's thread is inside MPI until they are done; should a rank not come within the communicator's
// deadline, a watching thread ends the job, since nothing else can.
#include <memory>
#include <span>

#include "annulet/comm/communicator.hpp"

namespace annulet::comm {

enum class Number { float32, float64, int32 };
enum class NativeReduction { sum, maximum };

// `counts`: elements of each rank's chunk, [rank]; chunks lie one after another.
class NativeCollectives {
 public:
  NativeCollectives(const Communicator& communicator, Number type, NativeReduction reduction = NativeReduction::sum);
  ~NativeCollectives();
  NativeCollectives(const NativeCollectives&) = delete;
  NativeCollectives& operator=(const NativeCollectives&) = delete;

  // MPI_Allreduce in place.
  void all_reduce(std::span<std::byte> data);

  // MPI_Bcast, MPI_Reduce (in place at the root).
  void broadcast(std::span<std::byte> data, int root);
  void reduce(std::span<std::byte> data, int root);

  // MPI_Reduce_scatter: this rank's chunk of the result goes to `chunk`.
  void reduce_scatter(std::span<const std::byte> data, std::span<std::byte> chunk, std::span<const int> counts);

  // MPI_Allgatherv in place: each rank's chunk to everyone.
  void all_gather(std::span<std::byte> data, std::span<const int> counts);

 private:
  class Watch;
  Communicator communicator_;
  Number type_;
  NativeReduction reduction_;
  std::unique_ptr<Watch> watch_;
};

}  // namespace annulet::comm
