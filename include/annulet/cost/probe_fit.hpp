#pragma once
// The link that explains measured traffic patterns of any kind: whatever is measured has plans, and the link sought is
// the one with which simulate() takes what was measured. Gauss-Newton on *relative* error (a microsecond matters at 1
// KiB, a millisecond at 8 MiB) over alpha, g and beta, for eager and rendezvous messages apart. Nothing else is free:
// no constant of a pattern, a size or a number of ranks. Probes that took far longer than predicted
// count less (Cauchy's weights).
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "annulet/cost/network.hpp"
#include "annulet/schedule/plan.hpp"

namespace annulet::cost {

// A pattern of float elements and what it took.
struct Probe {
  std::vector<schedule::Plan> plans;  // [rank], all launched at once
  int timed = -1;                     // the rank whose end counts; -1: the last one
  Seconds time{0};
  double weight = 1;  // of its squared error; medians of residuals count every probe once
};

Seconds probe_time(const Probe& probe, const Network& network);

enum class Scope { inside, between };

// What is sought and what is known: gamma, source and the other link of `network` are kept.
struct ProbeFitProblem {
  Network network;
  Scope sought = Scope::inside;
  std::optional<Bytes> eager_limit;  // absent: one piece for all sizes
};

struct ProbeFit {
  Link link;
  std::vector<Seconds> predicted;  // [probe]
  double median_residual = 0;      // of |predicted / measured - 1|
  double worst_residual = 0;
  // "alpha" or "beta" if the best link has a negative one, which no link has: the measurements do not fit the model.
  std::string negative;
};

// g is at least 0, and an eager byte takes no less than another; alpha and beta are free, but 0 where that explains the
// probes as well as a negative value. A piece for eager messages, and between nodes a burst, are kept only if the link
// explains the probes better with them. Throws ContractError without probes, or where a
// time or a weight is not positive.
ProbeFit fit_probes(std::span<const Probe> probes, const ProbeFitProblem& problem);

}  // namespace annulet::cost
