#pragma once
// How a step scales from one rank to thousands: predict_step for each number of ranks, by event simulation while its
// plans are few and by the ring's closed form above. Weak scaling keeps a rank's tokens, strong scaling the step's.
// Stragglers: rank r computes exp(sigma |z_r|) times as long as the profile says, z_r standard normal by (seed, r); a
// synchronous step waits for the slowest. The batch that still pays (McCandlish et al. 2018, "An Empirical Model of
// Large-Batch Training"): steps to a given loss are in proportion to 1 + C / B for a batch of B and a critical batch C.
#include <cstdint>
#include <optional>
#include <vector>

#include "annulet/plan/step.hpp"

namespace annulet::plan {

struct ScaleQuestion {
  StepQuestion step;                         // its ranks and tokens are where scaling starts
  std::vector<int> ranks;                    // ascending
  bool strong = false;                       // the tokens of a step stay, whatever the ranks
  bool choose_bucket = true;                 // the cheapest cap for each number of ranks
  double jitter = 0;                         // sigma
  std::uint64_t seed = 1;                    // of the stragglers
  std::optional<Elements> critical_batch{};  // in tokens
};

enum class Limit { computing, stragglers, latency, bandwidth };
std::string_view to_text(Limit limit);

struct ScalePoint {
  int ranks = 1, nodes = 1;
  Elements tokens = 0;
  Bytes bucket{0};
  Seconds step{0}, exposed{0};
  double efficiency = 1;  // tokens per second and rank, of that at the first number of ranks
  double mfu = 0;
  bool simulated = false;
  Limit limit = Limit::computing;
};

// [rank] exp(sigma |z|); empty for sigma = 0.
std::vector<double> slowdowns(int ranks, double sigma, std::uint64_t seed);

std::vector<ScalePoint> scale(const ScaleQuestion& question);

// Steps needed at a batch of B tokens, relative to as many as a very large batch needs.
double relative_steps(Elements batch, Elements critical_batch);

Answer plan_scale(const ScaleQuestion& question);

}  // namespace annulet::plan
