#include "plan_probe.hpp"

#include <algorithm>
#include <limits>
#include <thread>

#include "annulet/base/statistics.hpp"
#include "annulet/schedule/recursive_doubling.hpp"

namespace annulet::measure {
namespace {

constexpr double kNothing = -std::numeric_limits<double>::infinity();
constexpr Seconds kTick{1e-9};  // of the clock: no time is zero

std::shared_ptr<const schedule::Plan> shared(schedule::Plan plan) {
  return std::make_shared<const schedule::Plan>(std::move(plan));
}

}  // namespace

PlanProbe::PlanProbe(std::unique_ptr<comm::Transport> transport, Elements largest, Seconds deadline)
    : data_(static_cast<std::size_t>(largest)),
      agreed_(kMostAgreed, kNothing),
      engine_(std::move(transport), {collectives::Driver::polling, deadline, 1}) {
  agreement_ = engine_.declare({"calibration agreement", comm::Purpose::control, collectives::maximum_of<double>(),
                                shared(schedule::recursive_doubling_all_reduce(rank(), world(), Elements{kMostAgreed})),
                                std::as_writable_bytes(std::span(agreed_))});
}

std::size_t PlanProbe::add(schedule::Plan plan) {
  ANNULET_EXPECTS(plan.elements <= std::ssize(data_), "a plan fits the vector of the probe");
  const auto data = std::as_writable_bytes(std::span(data_).first(static_cast<std::size_t>(plan.elements)));
  plans_.push_back(engine_.declare(
      {"calibration", comm::Purpose::other, collectives::sum_of<float>(), shared(std::move(plan)), data}));
  return plans_.size() - 1;
}

std::vector<double> PlanProbe::run(std::size_t plan, int rounds, bool counts, Seconds pause) {
  std::vector<double> mine;
  for (int round = 0; round < rounds; ++round) {
    if (pause > Seconds(0)) {
      std::this_thread::sleep_for(pause);
      const double wish = start_.proposal();
      start_.wait(maximum(std::span(&wish, 1)).front());
    }
    const double time = run_once(plans_[plan]).count();
    mine.push_back(counts ? time : kNothing);
  }
  mine.push_back(Seconds(Clock::now() - born_).count());
  std::vector<double> slowest = maximum(mine);
  spent_ = Seconds(slowest.back());
  slowest.pop_back();
  return slowest;
}

std::vector<double> PlanProbe::maximum(std::span<const double> values) {
  ANNULET_EXPECTS(values.size() <= kMostAgreed, "ranks agree on a few values at a time");
  std::fill(std::copy(values.begin(), values.end(), agreed_.begin()), agreed_.end(), kNothing);
  run_once(agreement_);
  return {agreed_.begin(), agreed_.begin() + static_cast<std::ptrdiff_t>(values.size())};
}

std::vector<double> PlanProbe::from_rank_0(std::vector<double> values) {
  if (rank() != 0) std::fill(values.begin(), values.end(), kNothing);
  return maximum(values);
}

Seconds PlanProbe::run_once(collectives::OperationId id) {
  engine_.launch(id);
  engine_.wait(id);
  const collectives::Timeline& timeline = engine_.timeline(id);
  return timeline.finished - timeline.launched;
}

namespace {

// Batches double as far as the share of time allows, since one slow round (the first opens connections) says little
// about how many fit.
std::vector<double> times_of(PlanProbe& probe, std::size_t plan, const Rounds& rounds, bool counts) {
  const Seconds end = probe.spent() + rounds.share;
  std::vector<double> times = probe.run(plan, 1, counts, rounds.pause);
  Seconds best(times.front());
  while (std::ssize(times) < rounds.fewest || (std::ssize(times) < rounds.most && probe.spent() + best < end)) {
    const int done = static_cast<int>(times.size());
    const int room = std::min({done, rounds.most - done, static_cast<int>(PlanProbe::kMostAgreed) - 1});
    const double fitting = (end - probe.spent()) / std::max<Seconds>(best + rounds.pause, kTick);
    const int batch = static_cast<int>(std::clamp(fitting, 1.0, std::max(1.0, double(room))));
    for (const double time : probe.run(plan, batch, counts, rounds.pause)) {
      times.push_back(time);
      best = std::min(best, Seconds(time));
    }
  }
  return times;
}

}  // namespace

Seconds quickest(PlanProbe& probe, std::size_t plan, const Rounds& rounds, bool counts) {
  return std::max(Seconds(std::ranges::min(times_of(probe, plan, rounds, counts))), kTick);
}

Seconds typical(PlanProbe& probe, std::size_t plan, const Rounds& rounds, bool counts) {
  return std::max(Seconds(*median(times_of(probe, plan, rounds, counts))), kTick);
}

}  // namespace annulet::measure
