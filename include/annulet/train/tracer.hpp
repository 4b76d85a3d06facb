#pragma once
// Told on every rank what it did in each step, by the rank's own clock; implemented above (report/trace.hpp).
#include <string>
#include <vector>

#include "annulet/parallel/gradient_sync.hpp"
#include "annulet/train/records.hpp"

namespace annulet::train {

// How a rank's instants become times that all ranks share: rank 0's time since `origin`, by one reading of the clocks.
struct TraceClock {
  Instant origin{};  // rank 0's
  Seconds ahead{0};  // this rank's clock before rank 0's

  Seconds at(Instant instant) const { return Seconds(instant - origin) - ahead; }
};

struct TracedStep {
  Instant began{}, backward_ended{};
  StepRecord record;
  std::vector<parallel::BucketTimes> buckets;  // empty where nothing is sent
};

class Tracer {
 public:
  virtual ~Tracer() = default;
  virtual void begin(int rank, int world, const TraceClock& clock) = 0;
  virtual void step(const TracedStep& step) = 0;

  // At a normal end: this rank's events, to be sent to rank 0; there, everybody's are kept, and elsewhere none.
  virtual std::string events() = 0;
  virtual void keep(const std::vector<std::string>& of_ranks) = 0;
  virtual void discard() = 0;
};

}  // namespace annulet::train
