#pragma once
// An engine that runs whichever plan a calibration asks for, and by which the ranks agree on what they measured.
#include <span>
#include <vector>

#include "annulet/base/aligned.hpp"
#include "annulet/collectives/engine.hpp"
#include "annulet/measure/transport_factory.hpp"
#include "common_start.hpp"

namespace annulet::measure {

class PlanProbe {
 public:
  // `largest`: the most floats that a plan works on.
  PlanProbe(std::unique_ptr<comm::Transport> transport, Elements largest, Seconds deadline);

  // This rank's plan, of floats. All before the first run, the same number on every rank.
  std::size_t add(schedule::Plan plan);

  // This rank's clock, as ClockOffset, for rounds that all ranks begin together.
  void set_ahead(Seconds ahead) { start_.set_ahead(ahead); }

  int rank() const { return engine_.rank(); }
  int world() const { return engine_.world(); }

  // Runs a plan `rounds` times, fewer than kMostAgreed: its times on the slowest of the ranks that count. With a pause,
  // nothing is sent for so long before each round, which all ranks then begin together. Collective.
  std::vector<double> run(std::size_t plan, int rounds, bool counts = true, Seconds pause = Seconds(0));

  // How old the probe was after the last run, the same on every rank.
  Seconds spent() const { return spent_; }

  // The largest of the ranks' values, element by element; at most kMostAgreed of them. Collective.
  std::vector<double> maximum(std::span<const double> values);

  // Rank 0's values on every rank, as many as above. Collective.
  std::vector<double> from_rank_0(std::vector<double> values);

  static constexpr std::size_t kMostAgreed = 16;

 private:
  Seconds run_once(collectives::OperationId id);

  CommonStart start_;
  Instant born_ = Clock::now();
  Seconds spent_{0};
  AlignedVector<float> data_;  // zeros, shared by all plans: one runs at a time
  AlignedVector<double> agreed_;
  std::vector<collectives::OperationId> plans_;
  collectives::OperationId agreement_{};
  collectives::Engine engine_;  // last: its operations point into the above
};

// As many rounds as fit into `share` of time, at least `fewest`, at most `most`.
struct Rounds {
  int fewest = 2;  // the very first one may have to open connections
  int most = 31;
  Seconds share{0.05};
  Seconds pause{0};  // before each
};

// The quickest of them, and the one in the middle. Collective.
Seconds quickest(PlanProbe& probe, std::size_t plan, const Rounds& rounds, bool counts = true);
Seconds typical(PlanProbe& probe, std::size_t plan, const Rounds& rounds, bool counts = true);

}  // namespace annulet::measure
