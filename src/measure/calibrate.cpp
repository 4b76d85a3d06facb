#include "annulet/measure/calibrate.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "annulet/base/aligned.hpp"
#include "annulet/schedule/ring.hpp"
#include "plan_probe.hpp"
#include "sizes.hpp"

namespace annulet::measure {
namespace {

constexpr std::size_t kReducedFloats = std::size_t{2} << 20;  // 8 MiB: beyond a core's own caches
constexpr int kMostRounds = 31;                               // of a size
constexpr int kFewestPasses = 3;

// One walk over `data` in segments, adding slots that were just written to as arrived messages are.
Seconds add_once(std::span<float> data, std::span<const float> slots, std::size_t segment) {
  const collectives::ElementType& sum = collectives::sum_of<float>();
  const Instant start = Clock::now();
  for (std::size_t first = 0; first + segment <= data.size(); first += segment) {
    const auto from = std::as_bytes(slots.subspan(first % slots.size(), segment));
    sum.combine(std::as_writable_bytes(data.subspan(first)).data(), from.data(), static_cast<Elements>(segment));
  }
  return Clock::now() - start;
}

// Measures size after size until all are done or the budget is spent. The same points on every rank.
std::vector<cost::RingPoint> measure(PlanProbe& probe, std::span<const Bytes> ladder,
                                     const CalibrationOptions& options) {
  std::vector<cost::RingPoint> points;
  const int ranks = probe.world();
  for (const Bytes size : ladder) {
    probe.add(schedule::ring_all_reduce({probe.rank(), ranks, floats(size), options.segment, options.slots}));
  }
  std::optional<std::size_t> rung = 0;
  while (rung) {
    const int to_come = options.sizes - static_cast<int>(points.size());
    const Rounds rounds{kFewestRounds, kMostRounds, (options.budget - probe.spent()) / to_come};
    const Seconds time = quickest(probe, *rung, rounds);
    points.push_back({ladder[*rung], ranks, options.segment, options.slots, time});
    rung = next_size(ladder, options.sizes, points, options.budget, options.budget - probe.spent());
  }
  return points;
}

// Rank 0's fit on every rank.
void share(PlanProbe& probe, Calibration& calibration) {
  const cost::Link& link = calibration.link;
  const auto agreed = probe.from_rank_0({link.alpha.count(), link.beta.value(), calibration.median_residual,
                                         calibration.worst_residual, calibration.clamped ? 1.0 : 0.0});
  calibration.link.alpha = Seconds(agreed[0]);
  calibration.link.beta = cost::SecondsPerByte(agreed[1]);
  calibration.median_residual = agreed[2], calibration.worst_residual = agreed[3];
  calibration.clamped = agreed[4] > 0;
}

}  // namespace

cost::SecondsPerByte reduction_pace(Elements segment, int slots, Seconds budget) {
  ANNULET_EXPECTS(segment > 0 && slots > 0, "floats are added in segments from slots");
  const std::size_t size = std::min(static_cast<std::size_t>(segment), kReducedFloats);
  AlignedVector<float> data(kReducedFloats), arrived(size * static_cast<std::size_t>(slots));
  Seconds quickest = Seconds::max();
  const Instant start = Clock::now();
  for (int pass = 0; pass < kFewestPasses || Clock::now() - start < budget; ++pass) {
    quickest = std::min(quickest, add_once(data, arrived, size));
  }
  return cost::SecondsPerByte(quickest.count() / static_cast<double>(kReducedFloats / size * size * sizeof(float)));
}

Calibration quick_calibration(const TransportFactory& make_transport, const CalibrationOptions& options) {
  ANNULET_EXPECTS(options.sizes >= 2, "a line needs two points");
  const Instant start = Clock::now();
  Calibration calibration;
  auto transport = make_transport();
  const int ranks = transport ? transport->world() : 1;
  if (ranks == 1) {
    calibration.link.source = "one rank: nothing is sent";
    return calibration;
  }
  const std::vector<Bytes> ladder = size_ladder(options.smallest, options.largest, ranks);
  PlanProbe probe(std::move(transport), floats(ladder.back()), options.deadline);
  calibration.points = measure(probe, ladder, options);
  const double pace = reduction_pace(options.segment, options.slots).value();
  calibration.link.gamma = cost::SecondsPerByte(probe.maximum(std::span(&pace, 1)).front());
  calibration.link.source = fmt::format("calibrated: ring traffic, {} ranks", ranks);
  if (probe.rank() == 0) {
    const cost::LinkFit fit = cost::fit_link(calibration.points, calibration.link);
    calibration.link = fit.link;
    calibration.median_residual = fit.median_residual, calibration.worst_residual = fit.worst_residual;
    calibration.clamped = fit.clamped;
  }
  share(probe, calibration);
  const double took = Seconds(Clock::now() - start).count();
  calibration.took = Seconds(probe.maximum(std::span(&took, 1)).front());
  return calibration;
}

}  // namespace annulet::measure
