#pragma once
// Stages 2 and 3 of ZeRO: gradients live in a few slots (schedule/slots.hpp) that buckets take turns in. Each bucket of
// each micro-batch is reduce-scattered as soon as it is final, and only the chunk that this rank owns is kept: the
// buffer of all gradients never exists. Backward waits where it begins a bucket whose slot has not been left yet.
#include <vector>

#include "annulet/base/aligned.hpp"
#include "annulet/parallel/gradient_sync.hpp"
#include "annulet/schedule/slots.hpp"

namespace annulet::parallel {

template <class T>
class ShardedGradients final : public GradientSync<T> {
 public:
  // Declares one reduce-scatter per bucket.
  ShardedGradients(collectives::Engine& engine, const nn::Layout& layout, std::vector<schedule::Bucket> buckets,
                   const SyncOptions& options, StateAccounts& accounts);

  nn::TensorValues<T> values() override { return nn::TensorValues<T>::at_places(places_); }
  nn::Accumulate accumulation(Elements) const override { return nn::Accumulate::overwrite; }
  void begin_micro_batch(bool last) override;
  void gradient_begins(std::size_t tensor) override;
  void gradient_ready(std::size_t tensor) override;
  std::span<const T> summed(std::size_t bucket, schedule::Interval elements) const override;
  Seconds waited() const override { return waited_; }

 private:
  void arrived(std::size_t bucket) override;
  void leave(std::size_t slot);
  void keep(std::size_t bucket);

  static constexpr std::size_t kNobody = static_cast<std::size_t>(-1);

  std::vector<std::size_t> slot_of_;  // [bucket]
  std::vector<AlignedVector<T>> slots_;
  std::vector<std::size_t> occupants_;  // [slot]: the bucket whose chunk has yet to be kept, or kNobody
  std::vector<T*> places_;              // [tensor]
  AlignedVector<T> kept_;               // the shard: this rank's chunks, one after the other
  std::vector<std::span<T>> kept_of_;   // [bucket]
  std::vector<bool> begun_;             // [bucket]: in this micro-batch
  std::vector<bool> adds_;              // [bucket]: an earlier micro-batch of this step has been kept
  Seconds waited_{0};
};

}  // namespace annulet::parallel
