#include "ring_probe.hpp"

#include <algorithm>
#include <limits>

#include "annulet/schedule/recursive_doubling.hpp"
#include "annulet/schedule/ring.hpp"

namespace annulet::measure {
namespace {

constexpr double kNothing = -std::numeric_limits<double>::infinity();

void keep_larger(std::byte* to, const std::byte* from, Elements n) {
  auto* a = reinterpret_cast<double*>(to);
  const auto* b = reinterpret_cast<const double*>(from);
  for (Elements i = 0; i < n; ++i) a[i] = std::max(a[i], b[i]);
}

constexpr collectives::ElementType kMaximum{"double maximum", sizeof(double), keep_larger};

std::shared_ptr<const schedule::Plan> shared(schedule::Plan plan) {
  return std::make_shared<const schedule::Plan>(std::move(plan));
}

}  // namespace

RingProbe::RingProbe(std::unique_ptr<comm::Transport> transport, std::span<const Bytes> ladder,
                     const CalibrationOptions& options)
    : data_(static_cast<std::size_t>(ladder.back().value()) / sizeof(float)),
      agreed_(kMostAgreed, kNothing),
      engine_(std::move(transport), {collectives::Driver::polling, options.deadline, 1}) {
  const int rank = engine_.rank(), world = engine_.world();
  for (const Bytes size : ladder) {
    const auto elements = size.value() / static_cast<Elements>(sizeof(float));
    const auto data = std::as_writable_bytes(std::span(data_).first(static_cast<std::size_t>(elements)));
    rings_.push_back(engine_.declare(
        {"calibration ring", comm::Purpose::other, collectives::sum_of<float>(),
         shared(schedule::ring_all_reduce({rank, world, elements, options.segment, options.slots})), data}));
  }
  agreement_ = engine_.declare({"calibration agreement", comm::Purpose::control, kMaximum,
                                shared(schedule::recursive_doubling_all_reduce(rank, world, Elements{kMostAgreed})),
                                std::as_writable_bytes(std::span(agreed_))});
}

Seconds RingProbe::run(std::size_t rung, int rounds) {
  std::vector<double> mine;
  for (int round = 0; round < rounds; ++round) mine.push_back(run_once(rings_[rung]).count());
  mine.push_back(Seconds(Clock::now() - born_).count());
  std::vector<double> slowest = maximum(mine);
  spent_ = Seconds(slowest.back());
  slowest.pop_back();
  return Seconds(*std::min_element(slowest.begin(), slowest.end()));
}

std::vector<double> RingProbe::maximum(std::span<const double> values) {
  ANNULET_EXPECTS(values.size() <= kMostAgreed, "ranks agree on a few values at a time");
  std::fill(std::copy(values.begin(), values.end(), agreed_.begin()), agreed_.end(), kNothing);
  run_once(agreement_);
  return {agreed_.begin(), agreed_.begin() + static_cast<std::ptrdiff_t>(values.size())};
}

std::vector<double> RingProbe::from_rank_0(std::vector<double> values) {
  if (rank() != 0) std::fill(values.begin(), values.end(), kNothing);
  return maximum(values);
}

Seconds RingProbe::run_once(collectives::OperationId id) {
  engine_.launch(id);
  engine_.wait(id);
  const collectives::Timeline& timeline = engine_.timeline(id);
  return timeline.finished - timeline.launched;
}

}  // namespace annulet::measure
