#pragma once
// The weights on one rank of a data-parallel world: where the model reads them, which of them this rank updates, and
// how they come to the others. Intervals are of the flat layout. Stage 0 of ZeRO keeps and updates all of them and
// sends nothing; stages 1 and 2 keep all, update a shard and gather the rest; stage 3 keeps a shard and gathers layers
// when they are needed.
#include <functional>
#include <memory>
#include <span>

#include "annulet/collectives/engine.hpp"
#include "annulet/nn/model.hpp"
#include "annulet/parallel/state_memory.hpp"
#include "annulet/schedule/zero.hpp"

namespace annulet::parallel {

using schedule::SyncOptions;

// What is worked on next.
enum class Passes { train, evaluate };

template <class T>
class WeightSync {
 public:
  // Called with some elements and their values.
  using Visitor = std::function<void(schedule::Interval, std::span<const T>)>;

  virtual ~WeightSync() = default;

  virtual nn::TensorValues<const T> values() const = 0;

  // What this rank updates of a bucket; then updated() for every bucket, from the last to the first.
  virtual schedule::Interval kept(std::size_t bucket) const = 0;
  virtual std::span<T> kept_values(std::size_t bucket) = 0;
  virtual void updated(std::size_t bucket) { (void)bucket; }

  // Before a forward pass, and a backward pass with it in training; then as the passes report.
  virtual void begin(Passes passes) { (void)passes; }
  virtual void needed(std::size_t layer) { (void)layer; }
  virtual void done(std::size_t layer) { (void)layer; }

  // Returns when nothing is under way.
  virtual void settle() {}

  // Shows all weights, some elements at a time in layout order. All ranks call it; settled.
  virtual void visit(const Visitor& visitor) = 0;

  // Sets elements, as far as this rank keeps them; settled.
  virtual void assign(schedule::Interval elements, std::span<const T> values) = 0;

  // For tests: the model of this rank reads a NaN in every tensor, until restore(); settled.
  virtual void spoil() = 0;
  virtual void restore() = 0;

  // Bytes that the plans launched so far put on this rank's wire, and how long somebody waited for them.
  virtual Bytes launched_bytes() const { return Bytes(0); }
  virtual Seconds waited() const { return Seconds(0); }
};

// Stage 0. `layout` and the engine outlive what is made here and below; `buckets` are those of the gradients.
template <class T>
std::unique_ptr<WeightSync<T>> make_replicated_weights(const nn::Layout& layout,
                                                       std::span<const schedule::Bucket> buckets,
                                                       MemoryAccount& account);

// Stages 1 and 2.
template <class T>
std::unique_ptr<WeightSync<T>> make_gathered_weights(collectives::Engine& engine, const nn::Layout& layout,
                                                     std::span<const schedule::Bucket> buckets,
                                                     const SyncOptions& options, MemoryAccount& account);

// What becomes of gathered weights that nobody needs any more: `spoilt` makes them NaN, so that a test sees who reads
// them.
enum class Freed { left, spoilt };

struct ShardingOptions {
  const SyncOptions& sync;
  StateAccounts& accounts;
  Freed freed;
};

// Stage 3; a bucket is a layer.
template <class T>
std::unique_ptr<WeightSync<T>> make_sharded_weights(collectives::Engine& engine, const nn::Layout& layout,
                                                    std::span<const schedule::Bucket> layers,
                                                    const ShardingOptions& options);

}  // namespace annulet::parallel
