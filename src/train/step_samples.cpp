#include "annulet/train/step_samples.hpp"

#include <algorithm>

#include "annulet/cost/closed_form.hpp"
#include "annulet/cost/simulate.hpp"

namespace annulet::train {
namespace {

constexpr std::size_t kHead = 3, kPerBucket = 3;

// One rank's rows, read by name.
class Rows {
 public:
  Rows(std::span<const std::byte> bytes, std::size_t buckets) : width_(kHead + kPerBucket * buckets) {
    values_.resize(bytes.size() / sizeof(double));
    std::ranges::copy(bytes, std::as_writable_bytes(std::span(values_)).begin());
  }
  std::size_t count() const { return values_.size() / width_; }
  long step(std::size_t row) const { return static_cast<long>(at(row, 0)); }
  Seconds began(std::size_t row) const { return Seconds(at(row, 1)); }
  Seconds backward_ended(std::size_t row) const { return Seconds(at(row, 2)); }
  Seconds ready(std::size_t row, std::size_t b) const { return Seconds(at(row, kHead + kPerBucket * b)); }
  Seconds started(std::size_t row, std::size_t b) const { return Seconds(at(row, kHead + kPerBucket * b + 1)); }
  Seconds finished(std::size_t row, std::size_t b) const { return Seconds(at(row, kHead + kPerBucket * b + 2)); }

 private:
  double at(std::size_t row, std::size_t column) const { return values_[row * width_ + column]; }
  std::size_t width_;
  std::vector<double> values_;
};

struct Span {
  Seconds begin, end;
};

Seconds length_of_union(std::vector<Span> spans) {
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
  Seconds total{0}, reached{-1e300};
  for (const Span& span : spans) {
    total += std::max(Seconds(0), span.end - std::max(span.begin, reached));
    reached = std::max(reached, span.end);
  }
  return total;
}

// All ranks' plans of all buckets, generated once.
std::vector<std::vector<schedule::Plan>> all_plans(int world, const StepSamples::Context& context) {
  std::vector<std::vector<schedule::Plan>> plans;
  for (const schedule::Exchange& exchange : context.exchanges) {
    plans.emplace_back();
    for (int r = 0; r < world; ++r) {
      plans.back().push_back(schedule::exchange_plan(exchange, r, world, context.sync));
    }
  }
  return plans;
}

class Predictor {
 public:
  Predictor(std::vector<Rows> ranks, const StepSamples::Context& context)
      : ranks_(std::move(ranks)),
        exchanges_(context.exchanges),
        network_(context.network),
        sync_(context.sync),
        also_(context.also) {
    simulates_ = steps_of_plans(world(), context) <= kMostSteps;
    if (simulates_) plans_ = all_plans(world(), context);
    for (const schedule::Exchange& exchange : exchanges_) {
      sends_.push_back(schedule::exchange_sends(exchange, 0, world(), sync_));
    }
  }

  StepSamples::Report run() const {
    StepSamples::Report report;
    const std::size_t stride = affordable_stride();
    for (std::size_t row = 0; row < ranks_[0].count(); ++row) {
      if (row % stride == 0 || ranks_[0].step(row) == also_) add(row, report);
    }
    return report;
  }

 private:
  int world() const { return static_cast<int>(ranks_.size()); }

  // Simulating costs some tenth of a microsecond a step of a plan: larger worlds look at fewer of their samples, and
  // above a few hundred ranks the closed form serves.
  static constexpr std::size_t kMostSteps = 5'000'000;

  static std::size_t steps_of_plans(int world, const StepSamples::Context& context) {
    std::size_t steps = 1;
    for (const schedule::Exchange& exchange : context.exchanges) {
      const schedule::Plan plan = schedule::exchange_plan(exchange, 0, world, context.sync);
      steps += plan.steps.size() * static_cast<std::size_t>(world);
    }
    return steps;
  }

  std::size_t affordable_stride() const {
    std::size_t steps = 1;
    for (const auto& bucket : plans_) steps += bucket.size() * bucket.front().steps.size();
    return 1 + ranks_[0].count() * steps / (4 * kMostSteps);
  }

  Seconds last_start(std::size_t row, std::size_t bucket) const {
    Seconds last = ranks_[0].started(row, bucket);
    for (const Rows& rank : ranks_) last = std::max(last, rank.started(row, bucket));
    return last;
  }

  // On rank 0, from the beginning of the step.
  std::vector<Seconds> predicted_ends(std::size_t row) const {
    return simulates_ ? simulated_ends(row) : closed_form_ends(row);
  }

  std::vector<Seconds> simulated_ends(std::size_t row) const {
    std::vector<cost::LaunchedCollective> collectives;
    for (std::size_t b = 0; b < plans_.size(); ++b) {
      cost::LaunchedCollective collective{{}, exchanges_[b].element, {}};
      for (std::size_t r = 0; r < ranks_.size(); ++r) {
        collective.plans.push_back(&plans_[b][r]);
        collective.launched.push_back(ranks_[r].started(row, b) - ranks_[0].began(row));
      }
      collectives.push_back(std::move(collective));
    }
    std::vector<Seconds> ends;
    for (const auto& of_ranks : cost::simulate(collectives, network_)) ends.push_back(of_ranks[0]);
    return ends;
  }

  // One bucket after the other, each from its last rank's start.
  std::vector<Seconds> closed_form_ends(std::size_t row) const {
    std::vector<Seconds> ends;
    for (std::size_t b = 0; b < exchanges_.size(); ++b) {
      const Seconds start = last_start(row, b) - ranks_[0].began(row);
      const Seconds before = ends.empty() ? start : ends.back();
      ends.push_back(std::max(start, before) + closed_form(exchanges_[b]));
    }
    return ends;
  }

  Seconds closed_form(const schedule::Exchange& exchange) const {
    const schedule::Execution execution = schedule::execution_of(exchange, sync_);
    return cost::total_time(
        {exchange.collective, execution.algorithm, exchange.bytes(), world(), exchange.element, execution.segment},
        network_);
  }

  void add(std::size_t row, StepSamples::Report& report) const {
    const Rows& mine = ranks_[0];
    const Seconds origin = mine.began(row);
    const auto ends = predicted_ends(row);
    std::vector<Span> measured, predicted;
    for (std::size_t b = 0; b < exchanges_.size(); ++b) {
      BucketRecord record;
      record.step = mine.step(row), record.bucket = b;
      record.bytes = schedule::payload(exchanges_[b], world());
      record.wire = sends_[b];
      record.ready = mine.ready(row, b) - origin;
      record.start = mine.started(row, b) - origin;
      record.end = mine.finished(row, b) - origin;
      record.measured = record.end - record.start;
      record.predicted = ends[b] - record.start;
      record.waiting = std::clamp(last_start(row, b) - mine.started(row, b), Seconds(0), record.measured);
      record.transfer = record.measured - record.waiting;
      measured.push_back({record.start, record.end});
      predicted.push_back({record.start, ends[b]});
      report.buckets.push_back(record);
    }
    const Seconds all_submitted =
        exchanges_.empty() ? mine.backward_ended(row) : last_start(row, exchanges_.size() - 1);
    report.steps.push_back({length_of_union(measured), length_of_union(predicted),
                            std::max(Seconds(0), all_submitted - mine.backward_ended(row))});
  }

  std::vector<Rows> ranks_;
  std::span<const schedule::Exchange> exchanges_;
  cost::Network network_;
  parallel::SyncOptions sync_;
  std::optional<long> also_;
  std::vector<Bytes> sends_;  // [bucket] by rank 0
  bool simulates_ = true;
  std::vector<std::vector<schedule::Plan>> plans_;  // [bucket][rank]; empty unless simulated
};

}  // namespace

StepSamples::StepSamples(long steps, std::size_t buckets, std::optional<long> also, long most)
    : buckets_(buckets), stride_(std::max(1L, (steps - 1) / most + 1)), also_(also) {
  const auto rows = static_cast<std::size_t>(count(steps));
  steps_.reserve(rows);
  instants_.reserve(rows * (kHead - 1 + kPerBucket * buckets));
}

Instant ClockDrift::on_rank_zero(Instant instant) const {
  const Seconds between = last.at - first.at;
  const double way = between.count() > 0 ? Seconds(instant - first.at) / between : 0;
  const Seconds ahead = first.ahead + way * (last.ahead - first.ahead);
  return instant - std::chrono::duration_cast<Clock::duration>(ahead);
}

template <class T>
void StepSamples::add(long step, const parallel::GradientSync<T>& sync, Instant began, Instant backward_ended) {
  steps_.push_back(step);
  instants_.insert(instants_.end(), {began, backward_ended});
  for (std::size_t b = 0; b < buckets_; ++b) {
    const parallel::BucketTimes times = sync.times(b);
    instants_.insert(instants_.end(), {times.ready, times.started, times.finished});
  }
}

StepSamples::Report StepSamples::gather(const comm::Communicator& communicator, const Context& context) const {
  std::vector<double> rows;
  const std::size_t width = kHead - 1 + kPerBucket * buckets_;
  for (std::size_t row = 0; row < steps_.size(); ++row) {
    rows.push_back(static_cast<double>(steps_[row]));
    for (std::size_t i = 0; i < width; ++i) {
      const Instant instant = context.clock.on_rank_zero(instants_[row * width + i]);
      rows.push_back(Seconds(instant.time_since_epoch()).count());
    }
  }
  std::vector<Rows> ranks;
  for (const auto& bytes : communicator.gather(std::as_bytes(std::span(rows)), 0)) ranks.emplace_back(bytes, buckets_);
  if (ranks.empty()) return {};
  return Predictor(std::move(ranks), context).run();
}

template void StepSamples::add<float>(long, const parallel::GradientSync<float>&, Instant, Instant);
template void StepSamples::add<double>(long, const parallel::GradientSync<double>&, Instant, Instant);

}  // namespace annulet::train
