#pragma once
// The overlap scheduler: backward says which gradients are final, and as soon as the last one of a bucket is, the
// bucket's ring all-reduce is launched while backward works on earlier layers (PyTorch DDP, Li et al. 2020,
// section 3.2.3). Buckets are slices of the flat gradient buffer; gradients are summed in place. Every rank launches
// every bucket, also one whose share of the batch is empty.
#include <optional>
#include <span>
#include <vector>

#include "annulet/collectives/engine.hpp"
#include "annulet/nn/model.hpp"
#include "annulet/schedule/gradient_plan.hpp"

namespace annulet::parallel {

using schedule::SyncOptions;

// When a bucket's gradients were final on this rank, and its operation's own instants.
struct BucketTimes {
  Instant ready;
  Instant started;
  Instant finished;
};

// For a profile of computing: when each gradient was final, less what looking for bad values had taken by then, and how
// often a polling driver would have looked since the first one was.
struct GradientInstants {
  std::vector<Instant> final;  // [tensor]
  Seconds checking{0};
  Seconds between{0};             // sum of the times between pulses
  double squares_between{0};      // of the same, squared
  std::optional<Instant> looked;  // at the last pulse

  void pulse(Instant now);
};

template <class T>
class GradientSync final : public nn::Progress {
 public:
  // Declares one operation per bucket. `gradients` has layout.size() elements and outlives this object.
  GradientSync(collectives::Engine& engine, const nn::Layout& layout, std::span<T> gradients,
               const SyncOptions& options);

  // From the next step on writes the instants of every step to `where`, which stays until the last step; bad values are
  // then looked for even in a world of one, so that a rank among others does the same work.
  void record(GradientInstants& where);

  void begin_step();
  void gradient_ready(std::size_t tensor) override;
  void pulse() override;
  void finish();  // returns when every bucket is summed

  // Whether this rank's own gradients of this step were finite before they were summed.
  bool finite() const { return finite_; }

  // This rank's part of the squared norm of the summed gradients: the chunks it owns. Sum over ranks = |g|^2.
  double owned_squared_norm() const;

  std::span<const schedule::Bucket> buckets() const { return buckets_; }
  const schedule::Plan& plan(std::size_t bucket) const;
  BucketTimes times(std::size_t bucket) const;

  // Bytes that this rank's plans put on the wire in a step.
  Bytes planned_bytes() const { return planned_; }

 private:
  void launch(std::size_t bucket);
  void check(std::size_t bucket);

  collectives::Engine& engine_;
  std::span<T> gradients_;
  std::vector<schedule::Bucket> buckets_;
  std::vector<std::size_t> bucket_of_;  // [tensor]
  std::vector<std::size_t> missing_;    // [bucket]: tensors whose gradient is not final yet
  std::vector<collectives::OperationId> operations_;
  std::vector<Instant> ready_;
  Bytes planned_{0};
  bool finite_ = true;
  GradientInstants* instants_ = nullptr;  // where to, if somebody wants to know
};

// Whether every value is finite. Memory speed.
template <class T>
bool all_finite(std::span<const T> values);

}  // namespace annulet::parallel
