#pragma once
// The instants of some steps' buckets, kept on every rank without a message during the run, brought together on rank 0
// afterwards and set beside the event simulation of the same step.
#include <optional>
#include <span>
#include <vector>

#include "annulet/comm/communicator.hpp"
#include "annulet/cost/network.hpp"
#include "annulet/parallel/gradient_sync.hpp"
#include "annulet/train/records.hpp"

namespace annulet::train {

// How far this rank's clock was ahead of rank 0's, and when.
struct ClockReading {
  Instant at{};
  Seconds ahead{0};
};

// Two readings; between them the clocks drift apart at a steady pace.
struct ClockDrift {
  ClockReading first, last;

  // Rank 0's time at this rank's instant.
  Instant on_rank_zero(Instant instant) const;
};

class StepSamples {
 public:
  // Room for about `most` evenly spaced steps out of `steps`, of `buckets` buckets each; and `also` this one.
  StepSamples(long steps, std::size_t buckets, std::optional<long> also = std::nullopt, long most = 200);

  bool wants(long step) const { return step % stride_ == 0 || step == also_; }
  long count(long steps) const {
    return (steps + stride_ - 1) / stride_ + (also_ ? 1 : 0);
  }  // how many of the first so many

  // The buckets of a step that has just ended.
  template <class T>
  void add(long step, const parallel::GradientSync<T>& sync, Instant began, Instant backward_ended);

  struct Report {
    std::vector<BucketRecord> buckets;
    std::vector<StepCommunication> steps;  // of the same sampled steps
  };

  // What is needed to set predictions beside the samples; `clock` is this rank's.
  struct Context {
    std::span<const schedule::Exchange> exchanges;  // [bucket]
    parallel::SyncOptions sync;
    cost::Network network;
    ClockDrift clock;
    std::optional<long> also{};  // a step that must not be left out, however many there are
  };

  // Collective, after the engine has gone. On rank 0: everything measured and predicted; elsewhere empty.
  Report gather(const comm::Communicator& communicator, const Context& context) const;

 private:
  std::size_t buckets_;
  long stride_;
  std::optional<long> also_;
  std::vector<long> steps_;        // [sample]
  std::vector<Instant> instants_;  // [sample]: began, backward ended, then ready, started, finished per bucket
};

}  // namespace annulet::train
