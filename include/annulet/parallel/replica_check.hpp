#pragma once
// Whether the weights are the same on all ranks, tensor by tensor: each rank's checksums go to all others in one small
// all-gather of the engine. For stages 0 to 2 of ZeRO, where every rank keeps all weights.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "annulet/collectives/engine.hpp"
#include "annulet/nn/layout.hpp"
#include "annulet/parallel/weight_sync.hpp"

namespace annulet::parallel {

class ReplicaCheck {
 public:
  // Declares the all-gather. The engine and the layout outlive it.
  ReplicaCheck(collectives::Engine& engine, const nn::Layout& layout);

  // Empty if all ranks keep the same weights, else "layers.0.weight on rank 2", and how many tensors more differ; the
  // same on all ranks. Nothing else is under way.
  template <class T>
  std::string difference(WeightSync<T>& weights);

 private:
  std::uint64_t& checksum(int rank, std::size_t tensor) { return checksums_[index(rank, tensor)]; }
  std::size_t index(int rank, std::size_t tensor) const {
    return static_cast<std::size_t>(rank) * layout_.tensors().size() + tensor;
  }
  std::vector<int> dissenters(std::size_t tensor) const;
  std::string verdict() const;

  collectives::Engine& engine_;
  const nn::Layout& layout_;
  std::vector<std::uint64_t> checksums_;  // [rank, tensor]
  collectives::OperationId operation_;
};

// Another one for any other bits, but for one case in 2^64 or so.
template <class T>
std::uint64_t checksum(std::span<const T> values, std::uint64_t before);

}  // namespace annulet::parallel
