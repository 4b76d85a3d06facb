#pragma once
// Gradients that are summed in the fixed tree of micro-shards (schedule/micro_shards.hpp), for all stages of ZeRO: a
// rank sums each of its pieces by itself, some micro-shards in each pass of the model, a slot for each sum that waits
// for others; with the last pass buckets are launched as they get ready, with all pieces of the rank. A bucket's slots
// lie one after the other. What the slots take beyond the gradients that the stage keeps counts as partial sums.
#include <optional>
#include <vector>

#include "annulet/base/aligned.hpp"
#include "annulet/parallel/gradient_sync.hpp"
#include "annulet/schedule/micro_shards.hpp"

namespace annulet::parallel {

template <class T>
class ReproducibleGradients final : public GradientSync<T> {
 public:
  // Declares one all-reduce or reduce-scatter per bucket; `sums` are this rank's.
  ReproducibleGradients(collectives::Engine& engine, const nn::Layout& layout, const SyncOptions& options, int stage,
                        schedule::RankSums sums, StateAccounts& accounts);

  nn::TensorValues<T> values() override;
  nn::Accumulate accumulation(Elements) const override { return nn::Accumulate::overwrite; }
  void begin_pass(Elements number) override { pass_ = static_cast<std::size_t>(number); }
  void gradient_ready(std::size_t tensor) override;
  std::span<const T> summed(std::size_t bucket, schedule::Interval elements) const override;

 private:
  schedule::RankSums sums_;
  std::size_t pass_ = 0;
  std::vector<AlignedVector<T>> memory_;  // [bucket], slot after slot
  std::vector<std::vector<T*>> places_;   // [slot][tensor]
  std::vector<Elements> sizes_;           // [tensor]
  std::optional<MemoryShare> kept_;
};

}  // namespace annulet::parallel
