// Stages 1 and 2 of ZeRO: every rank keeps all weights and updates its shard; a bucket's all-gather begins as soon as
// it is updated, the last bucket's first, since the next forward pass begins there, and is waited for when that pass
// comes to the first layer of the bucket.
#include <fmt/format.h>

#include "annulet/schedule/shards.hpp"
#include "part.hpp"
#include "replicated_weights.hpp"

namespace annulet::parallel {
namespace {

template <class T>
class GatheredWeights final : public ReplicatedWeights<T> {
 public:
  GatheredWeights(collectives::Engine& engine, const nn::Layout& layout, std::span<const schedule::Bucket> buckets,
                  const SyncOptions& options, MemoryAccount& account)
      : ReplicatedWeights<T>(layout, buckets, account),
        engine_(engine),
        shard_(schedule::shard(buckets, engine.world(), engine.rank())),
        first_bucket_(layout.layers(), buckets.size()),
        end_bucket_(layout.layers(), 0) {
    for (std::size_t b = 0; b < buckets.size(); ++b) {
      declare(b, options);
      for (std::size_t t = buckets[b].first_tensor; t < buckets[b].end_tensor; ++t) {
        const std::size_t layer = layout.tensors()[t].layer;
        first_bucket_[layer] = std::min(first_bucket_[layer], b), end_bucket_[layer] = b + 1;
      }
    }
  }

  schedule::Interval kept(std::size_t bucket) const override { return shard_[bucket]; }

  void updated(std::size_t bucket) override {
    engine_.launch(gathers_[bucket]);
    launched_ += wire_[bucket];
    engine_.poll();
  }

  void needed(std::size_t layer) override {
    for (std::size_t b = end_bucket_[layer]; b-- > first_bucket_[layer];) wait(b);
  }

  void settle() override {
    for (std::size_t b = gathers_.size(); b-- > 0;) wait(b);
  }

  Bytes launched_bytes() const override { return launched_; }
  Seconds waited() const override { return waited_; }

 private:
  void declare(std::size_t b, const SyncOptions& options) {
    const schedule::Interval elements = this->buckets()[b].elements;
    auto plan = std::make_shared<schedule::Plan>(schedule::bucket_plan(
        schedule::Collective::all_gather, engine_.rank(), engine_.world(), elements.count, Bytes(sizeof(T)), options));
    wire_.push_back(Bytes(sizeof(T)) * schedule::sent_elements(*plan));
    gathers_.push_back(engine_.declare(
        {fmt::format("all_gather of weight bucket {} of {}", b + 1, this->buckets().size()), comm::Purpose::weights,
         collectives::sum_of<T>(), std::move(plan), std::as_writable_bytes(part(this->elements(), elements))}));
  }

  void wait(std::size_t bucket) {
    if (engine_.finished(gathers_[bucket])) return;
    const Instant began = Clock::now();
    engine_.wait(gathers_[bucket]);
    waited_ += Clock::now() - began;
  }

  collectives::Engine& engine_;
  std::vector<schedule::Interval> shard_;
  std::vector<std::size_t> first_bucket_, end_bucket_;  // [layer]: where its tensors lie
  std::vector<collectives::OperationId> gathers_;       // [bucket]
  std::vector<Bytes> wire_;                             // [bucket]: what this rank's plan sends
  Bytes launched_{0};
  Seconds waited_{0};
};

}  // namespace

template <class T>
std::unique_ptr<WeightSync<T>> make_gathered_weights(collectives::Engine& engine, const nn::Layout& layout,
                                                     std::span<const schedule::Bucket> buckets,
                                                     const SyncOptions& options, MemoryAccount& account) {
  return std::make_unique<GatheredWeights<T>>(engine, layout, buckets, options, account);
}

template std::unique_ptr<WeightSync<float>> make_gathered_weights(collectives::Engine&, const nn::Layout&,
                                                                  std::span<const schedule::Bucket>, const SyncOptions&,
                                                                  MemoryAccount&);
template std::unique_ptr<WeightSync<double>> make_gathered_weights(collectives::Engine&, const nn::Layout&,
                                                                   std::span<const schedule::Bucket>,
                                                                   const SyncOptions&, MemoryAccount&);

}  // namespace annulet::parallel
