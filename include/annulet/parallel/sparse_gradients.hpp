#pragma once
// Top-k compression of gradients (schedule/compression.hpp) with error feedback: when a bucket's gradients are final,
// each of its tensors is added to its residual and the largest values are taken out; every rank gathers everybody's
// pieces, as its other buckets' are, while backward goes on; then the bucket becomes 0 and the pieces are added to it
// in rank order, so that all ranks get the same bits. Norm, clipping and update see that sum.
//   a piece    K values, then their K positions in the bucket; [rank] one after the other
//   residual   belongs to the parameters: other buckets choose the same values
#include <vector>

#include "annulet/base/aligned.hpp"
#include "annulet/parallel/gradient_sync.hpp"
#include "annulet/parallel/top_k.hpp"

namespace annulet::parallel {

template <class T>
class SparseGradients final : public GradientSync<T> {
 public:
  // Declares one all-gather per bucket; options.compression is top_k. `gradients` has layout.size() elements and
  // outlives this object, as the accounts do. Throws InputError for a bucket of 2^32 elements or more.
  SparseGradients(collectives::Engine& engine, const nn::Layout& layout, std::span<T> gradients,
                  const SyncOptions& options, StateAccounts& accounts);

  nn::TensorValues<T> values() override { return gradients_; }
  void begin_step() override;
  std::span<const T> summed(std::size_t bucket, schedule::Interval elements) const override;
  Seconds packing() const override { return packing_; }
  Seconds unpacking() const override { return unpacking_; }

  // What was not sent so far, in layout order; what this rank sends, or sent, of a bucket.
  std::span<const T> residual() const { return residual_; }
  std::span<const std::byte> piece(std::size_t bucket, int rank) const;

 private:
  struct Part {
    std::span<std::byte> values;
    std::span<std::uint32_t> positions;
  };

  void pack(std::size_t bucket) override;
  void unpack(std::size_t bucket);
  Part part_of(std::size_t bucket, int rank);

  int rank_, world_;
  std::vector<schedule::Interval> tensors_;  // of the flat buffer
  schedule::Compression compression_;
  std::span<T> gradients_;
  AlignedVector<T> residual_;
  std::vector<Elements> counts_;                  // [bucket] K
  std::vector<AlignedVector<std::byte>> pieces_;  // [bucket]
  TopK<T> top_k_;
  Seconds packing_{0}, unpacking_{0};
};

}  // namespace annulet::parallel
