#pragma once
// An engine whose operations are ring all-reduces of every size that a calibration may choose, and one by which the
// ranks agree on what they measured.
#include <span>
#include <vector>

#include "annulet/base/aligned.hpp"
#include "annulet/collectives/engine.hpp"
#include "annulet/measure/calibrate.hpp"

namespace annulet::measure {

class RingProbe {
 public:
  RingProbe(std::unique_ptr<comm::Transport> transport, std::span<const Bytes> ladder,
            const CalibrationOptions& options);

  int rank() const { return engine_.rank(); }

  // Runs this size `rounds` times, fewer than kMostAgreed: the time of the slowest rank in the quickest round.
  // Collective.
  Seconds run(std::size_t rung, int rounds);

  // How old the probe was after the last run, the same on every rank.
  Seconds spent() const { return spent_; }

  // The largest of the ranks' values, element by element; at most kMostAgreed of them. Collective.
  std::vector<double> maximum(std::span<const double> values);

  // Rank 0's values on every rank, as many as above. Collective.
  std::vector<double> from_rank_0(std::vector<double> values);

  static constexpr std::size_t kMostAgreed = 16;

 private:
  Seconds run_once(collectives::OperationId id);

  Instant born_ = Clock::now();
  Seconds spent_{0};
  AlignedVector<float> data_;  // zeros, shared by all sizes: one runs at a time
  AlignedVector<double> agreed_;
  std::vector<collectives::OperationId> rings_;  // [rung]
  collectives::OperationId agreement_{};
  collectives::Engine engine_;  // last: its operations point into the above
};

}  // namespace annulet::measure
