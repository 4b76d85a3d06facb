#include "annulet/cost/fit.hpp"

#include <algorithm>
#include <cmath>

#include "annulet/base/error.hpp"
#include "annulet/cost/simulate.hpp"
#include "annulet/schedule/ring.hpp"

namespace annulet::cost {
namespace {

constexpr Bytes kElement{4};
constexpr Elements kMostSimulatedSteps = 30'000;
constexpr int kRounds = 8;       // of Gauss-Newton; three are usual
constexpr int kHalvings = 3;     // of a round that made things worse
constexpr double kProbe = 1e-3;  // part of the measured time by which a coefficient is probed

Elements elements_of(const RingPoint& point) { return point.bytes.value() / kElement.value(); }

Bytes largest_chunk(const RingPoint& point) {
  return kElement * ((elements_of(point) + point.ranks - 1) / point.ranks);
}

Seconds linear_time(const RingPoint& point, const Link& link) {
  const double steps = point.ranks - 1;
  const Bytes chunk = largest_chunk(point);
  return steps * (2 * (link.alpha + link.port_time(chunk)) + link.gamma * chunk);
}

bool is_linear(const RingPoint& point) { return largest_chunk(point) <= kElement * point.segment; }

// A rank sends, receives and adds every segment of p - 1 chunks, and sends and receives them again.
Elements simulated_steps(const RingPoint& point) {
  const Elements segments = (largest_chunk(point).value() / kElement.value() + point.segment - 1) / point.segment;
  return 5 * (point.ranks - 1) * point.ranks * segments;
}

// Time as alpha * `alpha` + beta * `beta` + `rest`, near some link; in parts of the measured time.
struct Row {
  double alpha, beta, rest;
};

// By differences: exact within a linear piece, a secant across a kink.
Row linearised(const RingPoint& point, const Link& link) {
  const double steps = point.ranks - 1;
  Link later = link, slower = link;
  const Seconds more_alpha = kProbe * point.time / (2 * steps);
  const SecondsPerByte more_beta(kProbe * point.time.count() / (2 * steps * largest_chunk(point).as_double()));
  later.alpha += more_alpha, slower.beta += more_beta;
  const Seconds base = ring_point_time(point, link);
  Row row{(ring_point_time(point, later) - base) / more_alpha, 0, 0};
  row.beta = (ring_point_time(point, slower) - base).count() / more_beta.value();
  row.rest = (base - row.alpha * link.alpha).count() - row.beta * link.beta.value();
  const double measured = point.time.count();
  return {row.alpha / measured, row.beta / measured, row.rest / measured};
}

struct Solution {
  double alpha = 0, beta = 0;
};

double squared_error(std::span<const Row> rows, const Solution& s) {
  double sum = 0;
  for (const Row& row : rows) sum += std::pow(row.alpha * s.alpha + row.beta * s.beta + row.rest - 1, 2);
  return sum;
}

// Least squares of rows against 1, with both unknowns at least 0: inside if the free optimum is there, else on an edge.
Solution solve(std::span<const Row> rows) {
  double aa = 0, ab = 0, bb = 0, a1 = 0, b1 = 0;
  for (const Row& row : rows) {
    aa += row.alpha * row.alpha, ab += row.alpha * row.beta, bb += row.beta * row.beta;
    a1 += row.alpha * (1 - row.rest), b1 += row.beta * (1 - row.rest);
  }
  const double determinant = aa * bb - ab * ab;
  if (determinant > 1e-12 * aa * bb) {
    const Solution free{(a1 * bb - b1 * ab) / determinant, (b1 * aa - a1 * ab) / determinant};
    if (free.alpha >= 0 && free.beta >= 0) return free;
  }
  const Solution latency{aa > 0 ? std::max(0.0, a1 / aa) : 0, 0};
  const Solution bandwidth{0, bb > 0 ? std::max(0.0, b1 / bb) : 0};
  return squared_error(rows, latency) < squared_error(rows, bandwidth) ? latency : bandwidth;
}

Link with(Link link, const Solution& solution) {
  link.alpha = Seconds(solution.alpha), link.beta = SecondsPerByte(solution.beta);
  return link;
}

double squared_error(std::span<const RingPoint> points, const Link& link) {
  double sum = 0;
  for (const RingPoint& point : points) sum += std::pow(ring_point_time(point, link) / point.time - 1, 2);
  return sum;
}

// The link of one round; where the linear form reached too far, half the way to it, and half again.
Link improved(std::span<const RingPoint> points, const Link& link) {
  std::vector<Row> rows;
  for (const RingPoint& point : points) rows.push_back(linearised(point, link));
  Solution candidate = solve(rows);
  const double error = squared_error(points, link);
  for (int halving = 0; halving <= kHalvings; ++halving) {
    if (squared_error(points, with(link, candidate)) < error) return with(link, candidate);
    candidate.alpha = (candidate.alpha + link.alpha.count()) / 2;
    candidate.beta = (candidate.beta + link.beta.value()) / 2;
  }
  return link;
}

Link linear_fit(std::span<const RingPoint> points, const Link& known) {
  std::vector<Row> rows;
  for (const RingPoint& point : points) {
    const double steps = point.ranks - 1, measured = point.time.count();
    rows.push_back({2 * steps / measured, 2 * steps * largest_chunk(point).as_double() / measured,
                    linear_time(point, with(known, {})).count() / measured});
  }
  return with(known, solve(rows));
}

void add_residuals(std::span<const RingPoint> points, LinkFit& fit) {
  std::vector<double> residuals;
  for (const RingPoint& point : points) {
    fit.predicted.push_back(ring_point_time(point, fit.link));
    residuals.push_back(std::abs(fit.predicted.back() / point.time - 1));
  }
  std::sort(residuals.begin(), residuals.end());
  const std::size_t middle = residuals.size() / 2;
  fit.median_residual = residuals.size() % 2 == 1 ? residuals[middle] : (residuals[middle - 1] + residuals[middle]) / 2;
  fit.worst_residual = residuals.back();
}

}  // namespace

Seconds ring_point_time(const RingPoint& point, const Link& link) {
  if (is_linear(point) || simulated_steps(point) > kMostSimulatedSteps) return linear_time(point, link);
  std::vector<schedule::Plan> plans;
  LaunchedCollective collective{{}, kElement, std::vector<Seconds>(static_cast<std::size_t>(point.ranks))};
  for (int rank = 0; rank < point.ranks; ++rank) {
    plans.push_back(schedule::ring_all_reduce({rank, point.ranks, elements_of(point), point.segment, point.slots}));
  }
  for (const schedule::Plan& plan : plans) collective.plans.push_back(&plan);
  const auto ends = simulate(std::span(&collective, 1), link);
  return *std::max_element(ends[0].begin(), ends[0].end());
}

LinkFit fit_link(std::span<const RingPoint> points, const Link& known) {
  ANNULET_EXPECTS(!points.empty(), "a fit needs points");
  for (const RingPoint& point : points) {
    ANNULET_EXPECTS(point.ranks > 1 && point.bytes >= kElement && point.segment > 0 && point.time > Seconds(0),
                    "a point of a fit sent something and took some time");
  }
  LinkFit fit;
  fit.link = linear_fit(points, known);
  const bool settled = std::all_of(points.begin(), points.end(), is_linear);
  for (int round = 0; round < kRounds && !settled; ++round) {
    const Link before = fit.link;
    fit.link = improved(points, before);
    if (fit.link.alpha == before.alpha && fit.link.beta == before.beta) break;
  }
  fit.clamped = fit.link.alpha == Seconds(0) || fit.link.beta.value() == 0;
  add_residuals(points, fit);
  return fit;
}

}  // namespace annulet::cost
