#pragma once
// Which stage of ZeRO, bucket cap, algorithm and micro-batch to train with: every candidate is priced and those that do
// not fit the device are told with what they lack. Prices are closed forms. With C the compute of a step cut in k
// micro-batches (a third of it forward, the rest backward), A, S, G an all-reduce, reduce-scatter and all-gather of all
// gradients or weights, bucket by bucket, and t(X) the last bucket of X, which nothing hides:
//   stage 0   C + max(t(A), A - backward of one micro-batch)
//   stage 1   C + max(t(S), S - backward of one) + max(t(G), G - forward of one)
//   stage 2   C + t(S) + k max(0, S - backward of one) + max(t(G), G - forward of one)
//   stage 3   C + k (max(t(G), G - forward of one) + max(t(S), G + S - backward of one))
// (in stages 1 and 2 the gather hides in the next step's forward)
#include <string>
#include <vector>

#include "annulet/cost/closed_form.hpp"
#include "annulet/plan/activations.hpp"
#include "annulet/plan/memory.hpp"
#include "annulet/plan/step.hpp"

namespace annulet::plan {

struct AdviceQuestion {
  Architecture architecture;
  StepQuestion step;  // its work as without recomputation; its tokens: of a step over all ranks
  StateBytes bytes{};
  Bytes memory{0};               // of a rank's device
  std::vector<Bytes> buckets{};  // caps to try; empty: 1, 4, 25, 100 and 400 MiB
  std::size_t most = 12;         // candidates that are shown
};

struct Candidate {
  int stage = 0;
  Bytes bucket{0};
  schedule::Algorithm algorithm = schedule::Algorithm::ring;
  Elements micro_batch = 1;  // sequences
  Elements accumulated = 1;  // micro-batches of a step
  bool recompute = false;

  Bytes states{0}, activations{0}, in_flight{0};
  Seconds step{0}, exposed{0};
  double mfu = 0;
  std::string reason;  // what decides its time, or what it lacks

  Bytes needed() const { return states + activations + in_flight; }
};

struct Advice {
  std::vector<Candidate> feasible;    // the fastest first; of equal ones that which needs least memory
  std::vector<Candidate> infeasible;  // the nearest to fitting first
};
Advice advise(const AdviceQuestion& question);

Answer plan_advise(const AdviceQuestion& question);

}  // namespace annulet::plan
