#pragma once
// Which samples a step takes and which of them a rank takes. The order is a function of (seed, epoch) alone; a step is
// the next `batch` samples of it, the last step of an epoch what remains; a rank's part is contiguous, and parts differ
// by at most one sample (the first n mod p get the extra one). So every world sees the same steps, each sample once.
// Where samples are drawn at random (Order::draws) an index is the number of the draw, every step is whole, and an
// epoch is as many steps as the samples would fill.
#include <cstdint>
#include <span>
#include <vector>

#include "annulet/base/random.hpp"
#include "annulet/base/units.hpp"

namespace annulet::data {

// One rank's samples of one step; may be empty. Valid until the sampler's next begin_epoch.
struct Slice {
  std::span<const Elements> indices;
  Elements global = 0;           // samples of the whole step, over all ranks: what a mean divides by
  std::uint64_t first_draw = 0;  // place in the stream of all draws, epoch after epoch, for dropout

  // Part k of `parts` near-equal ones, to accumulate over; `global` stays that of the step.
  Slice micro(Elements k, Elements parts) const;
};

enum class Order { shuffled, sequential, draws };

struct SamplerOptions {
  Elements samples = 0;
  Elements batch = 0;  // of a step, over all ranks
  std::uint64_t seed = 1;
  Order order = Order::shuffled;
};

Elements steps_per_epoch(const SamplerOptions& options);

class Sampler {
 public:
  // Starts in epoch 0. Throws InputError unless samples and batch are at least 1; samples may be fewer than batch.
  explicit Sampler(const SamplerOptions& options);

  // Puts the samples in the order of that epoch (Fisher-Yates, O(samples)); allocates nothing.
  void begin_epoch(Elements epoch);

  Elements epoch() const { return epoch_; }
  Elements steps_per_epoch() const { return data::steps_per_epoch(options_); }

  // 0 <= step < steps_per_epoch(), 0 <= rank < world. slice(step, k, S) is also micro-shard k of S of that step.
  Slice slice(Elements step, Elements rank, Elements world) const;

 private:
  SamplerOptions options_;
  RandomStream stream_;
  Elements epoch_ = 0;
  std::vector<Elements> order_;
};

// For evaluation: each sample once over all ranks, in order, at most `capacity` samples per rank and step.
Sampler evaluation_sampler(Elements samples, Elements capacity, Elements world);

}  // namespace annulet::data
