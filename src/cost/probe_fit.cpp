#include "annulet/cost/probe_fit.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "annulet/base/error.hpp"
#include "annulet/base/statistics.hpp"
#include "annulet/cost/simulate.hpp"

namespace annulet::cost {
namespace {

constexpr int kFitRounds = 12;                        // of Gauss-Newton; a handful is usual
constexpr int kFitHalvings = 4;                       // of a round that made things worse
constexpr double kFitProbe = 1e-3;                    // part of a parameter by which it is probed
constexpr std::array kFirstBursts{8e3, 32e3, 128e3};  // bytes
constexpr std::array kFirstPaces{0.1, 0.3, 0.5};      // of a burst, in betas
constexpr double kGain = 0.8;                         // what a richer link must make of the error
constexpr double kGood = 0.01;                        // a median residual that needs no richer link
constexpr double kAsGood = 1.2;                       // residuals that differ by less are equally good
constexpr int kReweightings = 6;
constexpr double kFar = 3;  // median residuals: a probe farther off than that counts less
constexpr double kLeastScale = 1e-3, kLeastBetween = 0.1;  // medians between nodes were not held up by chance

// In seconds: alpha, g, beta, what a burst saves and the pace of its bytes; then alpha and g of eager messages, and how
// much more a byte of theirs takes than another, since they cross the same wire. Those that a link does not have are 0.
enum Parameter : std::size_t {
  kAlpha,
  kGap,
  kBeta,
  kBurst,
  kBurstPace,
  kEagerAlpha,
  kEagerGap,
  kMoreBeta,
  kParameters
};
using Parameters = std::array<double, kParameters>;

// What a link has besides alpha, g and beta.
struct Shape {
  bool burst = false, eager = false;

  bool has(std::size_t parameter) const { return parameter < kBurst || (parameter == kBurst ? burst : eager); }
};

bool may_be_negative(std::size_t parameter) {
  return parameter == kAlpha || parameter == kBeta || parameter == kEagerAlpha;
}

std::vector<double> weights_of(std::span<const Probe> probes) {
  std::vector<double> weights;
  for (const Probe& probe : probes) weights.push_back(probe.weight);
  return weights;
}

enum class Signs { any, not_negative };  // of alpha and beta

struct Fitter {
  std::span<const Probe> probes;
  const ProbeFitProblem& problem;
  Shape shape{};
  std::size_t held = kParameters;  // a parameter that stays as it is
  Signs signs = Signs::any;
  std::vector<double> weights = weights_of(probes);  // [probe], of squared errors

  Link link(const Parameters& p) const {
    const Link& known = problem.sought == Scope::inside ? problem.network.inside : problem.network.between;
    Link result{Seconds(p[kAlpha]), Seconds(p[kGap]), SecondsPerByte(p[kBeta]), known.gamma, known.source};
    if (shape.burst && p[kBeta] > 0) {
      result.burst = Bytes(std::llround(p[kBurst] / p[kBeta]));
      result.burst_pace = SecondsPerByte(std::min(p[kBurstPace], p[kBeta]));
    }
    if (shape.eager) {
      result.eager = {*problem.eager_limit, Seconds(p[kEagerAlpha]), Seconds(p[kEagerGap]),
                      SecondsPerByte(p[kBeta] + p[kMoreBeta])};
    }
    return result;
  }

  Network network(const Parameters& p) const {
    Network result = problem.network;
    (problem.sought == Scope::inside ? result.inside : result.between) = link(p);
    return result;
  }

  // Predicted in parts of measured.
  std::vector<double> ratios(const Parameters& p) const {
    const Network net = network(p);
    std::vector<double> result;
    for (const Probe& probe : probes) result.push_back(probe_time(probe, net) / probe.time);
    return result;
  }

  double squared_error(const Parameters& p) const {
    double sum = 0;
    const std::vector<double> all = ratios(p);
    for (std::size_t i = 0; i < all.size(); ++i) sum += weights[i] * (all[i] - 1) * (all[i] - 1);
    return sum;
  }

  // predicted / measured - 1.
  std::vector<double> residuals(const Parameters& p) const {
    std::vector<double> result = ratios(p);
    for (double& ratio : result) ratio -= 1;
    return result;
  }
};

// Gaussian elimination with pivots, of a symmetric system; a parameter on which nothing depends stays (0 of change).
std::vector<double> solve(std::vector<std::vector<double>> a, std::vector<double> b) {
  const std::size_t n = b.size();
  std::vector<double> x(n);
  std::vector<bool> used(n);
  double largest = 0;
  for (std::size_t i = 0; i < n; ++i) largest = std::max(largest, a[i][i]);
  std::vector<std::size_t> order;
  for (std::size_t round = 0; round < n; ++round) {
    std::size_t pivot = n;
    for (std::size_t i = 0; i < n; ++i) {
      if (!used[i] && (pivot == n || a[i][i] > a[pivot][pivot])) pivot = i;
    }
    if (a[pivot][pivot] <= 1e-12 * largest) break;
    used[pivot] = true;
    order.push_back(pivot);
    for (std::size_t i = 0; i < n; ++i) {
      if (used[i]) continue;
      const double factor = a[i][pivot] / a[pivot][pivot];
      for (std::size_t j = 0; j < n; ++j) a[i][j] -= factor * a[pivot][j];
      b[i] -= factor * b[pivot];
    }
  }
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    double rest = b[*it];
    for (std::size_t j = 0; j < n; ++j) {
      if (j != *it) rest -= a[*it][j] * x[j];
    }
    x[*it] = rest / a[*it][*it];
  }
  return x;
}

// The change of the parameters that `moving` names which is best by the linear form at `p`, each probed by differences;
// `scale` is what a parameter's size is measured by.
Parameters best_change(const Fitter& fitter, const Parameters& p, const Parameters& scale,
                       const std::vector<bool>& moving) {
  const std::vector<double> base = fitter.ratios(p);
  std::vector<std::size_t> which;
  std::vector<std::vector<double>> slopes;
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (!moving[i]) continue;
    Parameters probed = p;
    probed[i] += kFitProbe * scale[i];
    std::vector<double> slope = fitter.ratios(probed);
    for (std::size_t k = 0; k < base.size(); ++k) slope[k] = (slope[k] - base[k]) / kFitProbe;
    which.push_back(i), slopes.push_back(std::move(slope));
  }
  std::vector<std::vector<double>> a(which.size(), std::vector<double>(which.size()));
  std::vector<double> b(which.size());
  for (std::size_t k = 0; k < base.size(); ++k) {
    for (std::size_t i = 0; i < which.size(); ++i) {
      for (std::size_t j = 0; j < which.size(); ++j) a[i][j] += fitter.weights[k] * slopes[i][k] * slopes[j][k];
      b[i] += fitter.weights[k] * slopes[i][k] * (1 - base[k]);
    }
  }
  const std::vector<double> solution = solve(std::move(a), std::move(b));
  Parameters change{};
  for (std::size_t i = 0; i < which.size(); ++i) change[which[i]] = solution[i] * scale[which[i]];
  return change;
}

// What must not be negative, but would be, is taken out of the search and set to 0.
Parameters candidate(const Fitter& fitter, const Parameters& p, const Parameters& scale) {
  std::vector<bool> moving(p.size());
  for (std::size_t i = 0; i < p.size(); ++i) moving[i] = fitter.shape.has(i) && i != fitter.held;
  Parameters start = p, next = p;
  for (bool settled = false; !settled;) {
    const Parameters change = best_change(fitter, start, scale, moving);
    settled = true;
    for (std::size_t i = 0; i < p.size(); ++i) {
      next[i] = start[i] + change[i];
      const bool bounded = !may_be_negative(i) || fitter.signs == Signs::not_negative;
      if (!bounded || next[i] >= 0 || !moving[i]) continue;
      moving[i] = settled = false;
      start[i] = next[i] = 0;
    }
  }
  return next;
}

// Half of the quickest probe is latency, and the longest is all bandwidth: far off at worst, and of the right size.
Parameters first_guess(const Fitter& fitter, double burst, double burst_pace) {
  Seconds quickest = Seconds::max();
  double pace = 0;
  for (const Probe& probe : fitter.probes) {
    Elements sent = 0;
    std::size_t messages = 0;
    for (const schedule::Plan& plan : probe.plans) {
      sent = std::max(sent, schedule::sent_elements(plan)), messages = std::max(messages, plan.steps.size());
    }
    quickest = std::min(quickest, probe.time / double(std::max<std::size_t>(messages, 1)));
    pace = std::max(pace, 4 * static_cast<double>(sent) / probe.time.count());
  }
  const double alpha = quickest.count(), gap = 0.1 * alpha, beta = 1 / pace;
  Parameters all{alpha, gap, beta, beta * burst, beta * burst_pace, alpha, gap, beta};
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!fitter.shape.has(i)) all[i] = 0;
  }
  return all;
}

Parameters descend(const Fitter& fitter, Parameters p, const Parameters& scale) {
  double error = fitter.squared_error(p);
  for (int round = 0; round < kFitRounds; ++round) {
    Parameters next = candidate(fitter, p, scale);
    double improved = fitter.squared_error(next);
    for (int halving = 0; halving < kFitHalvings && improved >= error; ++halving) {
      for (std::size_t i = 0; i < p.size(); ++i) next[i] = (next[i] + p[i]) / 2;
      improved = fitter.squared_error(next);
    }
    if (!(improved < error * (1 - 1e-9))) break;
    const bool settled = improved > error * (1 - 1e-4);
    p = next, error = improved;
    if (settled) break;
  }
  return p;
}

// Least squares, and the guess that led there. A burst is a kink, over which descent does not find, so it is looked for
// from several sizes and with several paces, and then with the best pace near the best of them.
std::pair<Parameters, Parameters> start(Fitter fitter) {
  std::pair<Parameters, Parameters> found;
  double least = std::numeric_limits<double>::infinity();
  const auto from = [&](double burst, double pace) {
    const Parameters guess = first_guess(fitter, burst, pace), p = descend(fitter, guess, guess);
    const double error = fitter.squared_error(p);
    if (error < least) least = error, found = {p, guess};
  };
  if (!fitter.shape.burst) return from(0, 0), found;
  fitter.held = kBurstPace;
  for (const double burst : kFirstBursts) {
    for (const double pace : kFirstPaces) from(burst, pace);
  }
  fitter.held = kParameters;
  found.first = descend(fitter, found.first, found.second);
  return found;
}

// Least squares, repeated with less weight on what took far longer than predicted (Cauchy's weights): a rank that was
// held up in every round of one pattern must not bend the link for all others. What was quicker counts in full. Few
// probes tell the pace of a burst, and they would pass for held up: it stays as all of them have it.
Parameters best(Fitter fitter) {
  auto [p, scale] = start(fitter);
  fitter.held = kBurstPace;
  for (int round = 0; round < kReweightings; ++round) {
    const std::vector<double> residuals = fitter.residuals(p);
    std::vector<double> sizes;
    for (const double residual : residuals) sizes.push_back(std::abs(residual));
    const double far =
        kFar * std::max(fitter.problem.sought == Scope::between ? kLeastBetween : kLeastScale, *median(sizes));
    for (std::size_t i = 0; i < residuals.size(); ++i) {
      fitter.weights[i] = fitter.probes[i].weight / (1 + std::pow(std::min(0.0, residuals[i]) / far, 2));
    }
    p = descend(fitter, p, scale);
  }
  return p;
}

ProbeFit fit_of(const Fitter& fitter, const Parameters& p) {
  ProbeFit fit;
  fit.link = fitter.link(p);
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (p[i] < 0) fit.negative = i == kBeta ? "beta" : "alpha";
  }
  const Network network = fitter.network(p);
  std::vector<double> residuals;
  for (const Probe& probe : fitter.probes) {
    fit.predicted.push_back(probe_time(probe, network));
    residuals.push_back(std::abs(fit.predicted.back() / probe.time - 1));
  }
  fit.worst_residual = *std::max_element(residuals.begin(), residuals.end());
  fit.median_residual = *median(std::move(residuals));
  return fit;
}

// Where a link with nothing negative explains the probes as well, a negative coefficient was noise.
ProbeFit explained(std::span<const Probe> probes, const ProbeFitProblem& problem, Shape shape) {
  const Fitter free{probes, problem, shape}, bounded{probes, problem, shape, kParameters, Signs::not_negative};
  ProbeFit fit = fit_of(free, best(free));
  if (fit.negative.empty()) return fit;
  ProbeFit nearest = fit_of(bounded, best(bounded));
  return nearest.median_residual <= fit.median_residual * kAsGood + kGood ? nearest : fit;
}

}  // namespace

Seconds probe_time(const Probe& probe, const Network& network) {
  LaunchedCollective collective{{}, Bytes(sizeof(float)), std::vector<Seconds>(probe.plans.size())};
  for (const schedule::Plan& plan : probe.plans) collective.plans.push_back(&plan);
  const std::vector<Seconds> ends = simulate(std::span(&collective, 1), network).front();
  return probe.timed < 0 ? *std::max_element(ends.begin(), ends.end()) : ends[static_cast<std::size_t>(probe.timed)];
}

ProbeFit fit_probes(std::span<const Probe> probes, const ProbeFitProblem& problem) {
  ANNULET_EXPECTS(!probes.empty(), "a fit needs probes");
  for (const Probe& probe : probes) {
    ANNULET_EXPECTS(probe.plans.size() > 1 && probe.time > Seconds(0), "a probe of two or more ranks takes some time");
    ANNULET_EXPECTS(probe.weight > 0 && std::isfinite(probe.weight), "a probe weighs something");
  }
  const bool burst = problem.sought == Scope::between, eager = problem.eager_limit.has_value();
  ProbeFit fit = explained(probes, problem, {});
  for (const Shape shape : {Shape{true, false}, Shape{false, true}, Shape{true, true}}) {
    if ((shape.burst && !burst) || (shape.eager && !eager)) continue;
    if (fit.negative.empty() && fit.median_residual <= kGood) break;
    ProbeFit richer = explained(probes, problem, shape);
    const bool has_sense = richer.negative.empty(), had_sense = fit.negative.empty();
    if (has_sense == had_sense ? richer.median_residual < kGain * fit.median_residual : has_sense) fit = richer;
  }
  return fit;
}

}  // namespace annulet::cost
