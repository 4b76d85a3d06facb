#pragma once
// The overlap scheduler: backward says which gradients are final, and as soon as the last one of a bucket is, the
// bucket's ring collective is launched while backward works on earlier layers (PyTorch DDP, Li et al. 2020,
// section 3.2.3). Every rank launches every bucket, also one whose share of the batch is empty.
// This class is stage 0 of ZeRO, with all-reduces, and stage 1, with reduce-scatters: buckets are slices of one flat
// buffer, gradients are summed in place, and of several micro-batches the last one communicates. Stages 2 and 3 derive
// from it, and so does top-k compression. With compression bf16 gradients travel as bfloat16 and are added in float; a
// rank rounds the sums it has finished as if they had travelled, so that every stage has the same ones.
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "annulet/base/order_free_sum.hpp"
#include "annulet/collectives/engine.hpp"
#include "annulet/nn/model.hpp"
#include "annulet/parallel/state_memory.hpp"
#include "annulet/schedule/exchange.hpp"

namespace annulet::parallel {

using schedule::SyncOptions;

// When a bucket's gradients were final on this rank, and its operation's own instants.
struct BucketTimes {
  Instant ready;
  Instant started;
  Instant finished;
};

// For a profile of computing: when each gradient was final, less what looking for bad values had taken by then, and how
// often a polling driver would have looked since the first one was. Pulses are timed by the thread's own clock: where
// lone ranks share a core, the wall clock would count the others' turns, though in a run those often wait.
struct GradientInstants {
  std::vector<Instant> final;  // [tensor]
  Seconds checking{0};
  Seconds between{0};               // computed between pulses, summed
  double squares_between{0};        // of the same, squared
  std::optional<Seconds> computed;  // until the last pulse

  void pulse(Seconds now);
};

template <class T>
class GradientSync : public nn::Progress {
 public:
  // Declares one all-reduce per bucket. `gradients` has layout.size() elements and outlives this object.
  GradientSync(collectives::Engine& engine, const nn::Layout& layout, std::span<T> gradients,
               const SyncOptions& options);

  // The same with another collective.
  GradientSync(collectives::Engine& engine, const nn::Layout& layout, std::span<T> gradients,
               const SyncOptions& options, schedule::Collective collective);

  // From the next step on writes the instants of every step to `where`, which stays until the last step; bad values are
  // then looked for even in a world of one, so that a rank among others does the same work.
  void record(GradientInstants& where);

  // Where backward writes, and what it does with what is there.
  virtual nn::TensorValues<T> values() { return gradients_; }
  virtual nn::Accumulate accumulation(Elements micro_batch) const;

  virtual void begin_step();
  virtual void begin_micro_batch(bool last);                  // not needed where there is one
  virtual void begin_pass(Elements number) { (void)number; }  // of the model, of which there is one for a micro-batch
  void gradient_ready(std::size_t tensor) override;
  void pulse() override;
  void finish();  // returns when every bucket is summed

  // Whether this rank's own gradients of this step were finite before they were summed.
  bool finite() const { return finite_; }

  // Summed gradients of some of a bucket's elements; with a reduce-scatter they lie in the chunk that this rank owns.
  virtual std::span<const T> summed(std::size_t bucket, schedule::Interval elements) const;

  // This rank's part of the squared norm of the summed gradients: the chunks it owns. Sum over ranks = |g|^2.
  double owned_squared_norm() const;
  void add_owned_squares(OrderFreeSum& sum) const;  // the same

  std::span<const schedule::Bucket> buckets() const { return buckets_; }
  std::span<const schedule::Interval> shard() const { return shard_; }  // [bucket] the chunk that this rank owns
  std::span<const schedule::Exchange> exchanges() const { return exchanges_; }  // [bucket]
  const schedule::Plan& plan(std::size_t bucket) const;
  BucketTimes times(std::size_t bucket) const;

  // Bytes that this rank's plans put on the wire each time all buckets are launched, and in all launches so far.
  Bytes planned_bytes() const { return planned_; }
  Bytes launched_bytes() const { return launched_; }

  // Bytes that this rank brings to all buckets together.
  Bytes payload() const;

  // How long backward has waited so far.
  virtual Seconds waited() const { return Seconds(0); }

  // How long choosing what is sent took of this step's backward, and adding up what came, wherever that was done.
  virtual Seconds packing() const { return Seconds(0); }
  virtual Seconds unpacking() const { return Seconds(0); }

 protected:
  // What a bucket runs, and on what: `data` become the sums, or something from which `finish` makes them.
  struct Traffic {
    schedule::Exchange exchange;
    collectives::ElementType element;
    std::span<T> gradients;
    std::span<std::byte> data;
    std::function<void(std::span<std::byte> data)> finish{};
  };

  // Declares nothing: that is left to declare(), for all buckets.
  GradientSync(collectives::Engine& engine, std::vector<schedule::Bucket> buckets);
  void declare(schedule::Collective collective, const SyncOptions& options, std::vector<std::span<T>> memory);
  void declare(const SyncOptions& options, std::vector<Traffic> traffic);

  std::size_t bucket_of(std::size_t tensor) const { return bucket_of_[tensor]; }
  bool complete(std::size_t bucket) const { return missing_[bucket] == 0; }  // final in this micro-batch
  bool running(std::size_t bucket) const { return !engine_.finished(operations_[bucket]); }
  void wait(std::size_t bucket) { engine_.wait(operations_[bucket]); }

  // A bucket's gradients are final and about to be launched.
  virtual void pack(std::size_t bucket) { (void)bucket; }

  // A bucket of the last micro-batch is summed.
  virtual void arrived(std::size_t bucket) { (void)bucket; }

 private:
  void launch(std::size_t bucket);
  void check(std::size_t bucket);
  schedule::Interval finished_here(const schedule::Exchange& exchange, std::size_t bucket,
                                   const SyncOptions& options) const;

  collectives::Engine& engine_;
  std::span<T> gradients_;
  std::vector<schedule::Bucket> buckets_;
  std::vector<schedule::Interval> shard_;
  std::vector<schedule::Exchange> exchanges_;
  std::vector<std::span<T>> memory_;    // [bucket]
  std::vector<std::size_t> bucket_of_;  // [tensor]
  std::vector<std::size_t> missing_;    // [bucket]: tensors whose gradient is not final yet
  std::vector<collectives::OperationId> operations_;
  std::vector<Bytes> wire_;  // [bucket]: what this rank's plan sends
  std::vector<Instant> ready_;
  Bytes planned_{0}, launched_{0};
  bool finite_ = true;
  bool quiet_ = false;                    // in a micro-batch that is not communicated
  GradientInstants* instants_ = nullptr;  // where to, if somebody wants to know
};

// Whether every value is finite. Memory speed.
template <class T>
bool all_finite(std::span<const T> values);

}  // namespace annulet::parallel
