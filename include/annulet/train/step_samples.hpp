#pragma once
// The instants of some steps' buckets, kept on every rank without a message during the run, brought together on rank 0
// afterwards and set beside the event simulation of the same step.
#include <optional>
#include <vector>

#include "annulet/comm/communicator.hpp"
#include "annulet/cost/link.hpp"
#include "annulet/parallel/gradient_sync.hpp"
#include "annulet/train/records.hpp"

namespace annulet::train {

class StepSamples {
 public:
  // Room for about `most` evenly spaced steps out of `steps`, of `buckets` buckets each.
  StepSamples(long steps, std::size_t buckets, long most = 200);

  bool wants(long step) const { return step % stride_ == 0; }

  // The buckets of a step that has just ended. `ahead`: this rank's clock minus rank 0's.
  template <class T>
  void add(long step, const parallel::GradientSync<T>& sync, Instant began, Instant backward_ended, Seconds ahead);

  struct Report {
    std::vector<BucketRecord> buckets;
    std::vector<StepCommunication> steps;  // of the same sampled steps
  };

  // Collective, after the engine has gone. On rank 0: everything measured and predicted; elsewhere empty.
  Report gather(const comm::Communicator& communicator, std::span<const schedule::Bucket> buckets, Bytes element,
                const parallel::SyncOptions& sync, const cost::Link& link) const;

 private:
  std::size_t buckets_;
  long stride_;
  std::vector<double> rows_;  // per sampled step: step, began, backward ended, then ready, started, finished per bucket
};

}  // namespace annulet::train
