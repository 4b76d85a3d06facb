#include "annulet/plan/scale.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "annulet/base/error.hpp"
#include "annulet/base/random.hpp"
#include "annulet/cost/bucket_cap.hpp"
#include "annulet/cost/closed_form.hpp"

namespace annulet::plan {
namespace {

constexpr std::size_t kMostSimulated = 400'000;  // steps of plans for a number of ranks: a quarter of a second
constexpr double kNotWorthNaming = 0.02;         // of a step

StepQuestion at(const ScaleQuestion& q, int ranks) {
  StepQuestion step = q.step;
  step.ranks = ranks;
  step.sync.segment = step.gradient * step.work.parameters();  // a chunk is a message, as in the closed form
  if (!q.strong) step.tokens = (q.step.tokens + q.step.ranks - 1) / q.step.ranks * ranks;
  return step;
}

// What takes most of what the step is longer than one rank's undisturbed computing.
Limit limit_of(const StepQuestion& q, const ScalePoint& point, const cost::StepPrediction& step, Seconds computing) {
  const Seconds late = step.backward_ends - computing;
  if (std::max(late, point.exposed) <= kNotWorthNaming * step.step) return Limit::computing;
  if (late > point.exposed) return Limit::stragglers;
  const cost::Network network = network_of(q.machine, q.ranks);
  const Seconds latency =
      static_cast<double>(step.buckets.size()) * cost::ring_all_reduce_time(Bytes(0), q.ranks, network);
  const Seconds bandwidth = network.ring_link().beta * (q.gradient * q.work.parameters()) * 2 * (q.ranks - 1) / q.ranks;
  return latency > bandwidth ? Limit::latency : Limit::bandwidth;
}

ScalePoint point_of(const ScaleQuestion& q, int ranks) {
  const StepQuestion step = at(q, ranks);
  cost::StepInput input = step_input(step, cost::Driver::thread);
  const Seconds computing = input.profile.backward_ends;
  if (q.choose_bucket && ranks > 1) {
    input.most_simulated = 0;
    const cost::BucketCapChoice choice = cost::cheapest_bucket_cap(input);
    const auto cheapest = std::ranges::min_element(choice.curve, {}, &cost::CapPrediction::step);
    input.sync.bucket = input.sync.first_bucket = cheapest->cap;
  }
  input.most_simulated = kMostSimulated;
  input.slowdown = slowdowns(ranks, q.jitter, q.seed);
  const cost::StepPrediction predicted = cost::predict_step(input);
  ScalePoint point{ranks,          input.network.nodes(),
                   step.tokens,    input.sync.bucket,
                   predicted.step, predicted.exposed + predicted.control};
  point.mfu = utilisation(step, predicted.step);
  point.simulated = cost::can_simulate(input);
  point.limit = limit_of(step, point, predicted, computing);
  return point;
}

double speed(const ScalePoint& point) { return static_cast<double>(point.tokens) / (point.ranks * point.step.count()); }

Table critical_batch_table(const ScaleQuestion& q, const std::vector<ScalePoint>& points) {
  const Elements critical = *q.critical_batch;
  Table table{
      "critical_batch",
      fmt::format("steps to a given loss are in proportion to 1 + C/B, C = {} tokens; relative to the first row",
                  cell(critical).shown),
      {{"ranks", "ranks"},
       {"batch", "batch_tokens"},
       {"steps", "relative_steps"},
       {"time", "relative_time"},
       {"tokens used", "relative_tokens"}},
      {}};
  const auto steps = [&](const ScalePoint& p) { return relative_steps(p.tokens, critical); };
  const ScalePoint& first = points.front();
  for (const ScalePoint& p : points) {
    const double fewer = steps(p) / steps(first);
    table.rows.push_back({cell(std::int64_t{p.ranks}), cell(p.tokens), number(fewer, 4),
                          number(fewer * (p.step / first.step), 4),
                          number(fewer * static_cast<double>(p.tokens) / static_cast<double>(first.tokens), 3)});
  }
  return table;
}

void require_sense(const ScaleQuestion& q) {
  const auto refuse = [](std::string what, std::string hint) {
    throw InputError({std::move(what), "", std::move(hint)});
  };
  if (q.ranks.empty() || q.ranks.front() < 1 || !std::ranges::is_sorted(q.ranks)) {
    refuse("the numbers of ranks are not 1 or more in ascending order", "Give --ranks 1,8,64");
  }
  if (!(q.jitter >= 0 && q.jitter <= 2))
    refuse(fmt::format("a jitter of {} makes no sense", q.jitter), "Give --jitter 0.05");
  if (q.critical_batch && *q.critical_batch < 1)
    refuse("a critical batch has at least one token", "Give --critical-batch 2000000");
}

}  // namespace

std::string_view to_text(Limit limit) {
  switch (limit) {
    case Limit::computing:
      return "computing";
    case Limit::stragglers:
      return "stragglers";
    case Limit::latency:
      return "latency";
    case Limit::bandwidth:
      return "bandwidth";
  }
  return "unknown";
}

std::vector<double> slowdowns(int ranks, double sigma, std::uint64_t seed) {
  std::vector<double> factors;
  if (sigma <= 0) return factors;
  const RandomStream stream(seed, "stragglers");
  for (int r = 0; r < ranks; ++r) {
    factors.push_back(std::exp(sigma * std::abs(stream.normal(static_cast<std::uint64_t>(r)))));
  }
  return factors;
}

double relative_steps(Elements batch, Elements critical_batch) {
  return 1 + static_cast<double>(critical_batch) / static_cast<double>(batch);
}

std::vector<ScalePoint> scale(const ScaleQuestion& q) {
  require_sense(q);
  std::vector<ScalePoint> points;
  for (const int ranks : q.ranks) {
    points.push_back(point_of(q, ranks));
    points.back().efficiency = speed(points.back()) / speed(points.front());
  }
  return points;
}

Answer plan_scale(const ScaleQuestion& q) {
  const std::vector<ScalePoint> points = scale(q);
  Answer answer;
  Table table{
      "scale",
      fmt::format("{}, {}; {} scaling{}", q.step.work.model, q.step.machine.source, q.strong ? "strong" : "weak",
                  q.jitter > 0 ? fmt::format(", stragglers exp({} |z|), seed {}", q.jitter, q.seed) : ""),
      {{"ranks", "ranks"},
       {"nodes", "nodes"},
       {"tokens a step", "tokens"},
       {"bucket", "bucket_bytes"},
       {"step", "step_seconds"},
       {"exposed", "exposed_seconds"},
       {"efficiency", "efficiency"},
       {"MFU", "mfu"},
       {"limited by", "limited_by"},
       {"how", "how"}},
      {}};
  for (const ScalePoint& p : points) {
    table.rows.push_back({cell(std::int64_t{p.ranks}), cell(std::int64_t{p.nodes}), cell(p.tokens),
                          p.ranks == 1 ? cell() : Cell{p.bucket.value(), binary(p.bucket)}, cell(p.step),
                          cell(p.exposed), percent(p.efficiency), percent(p.mfu), cell(std::string(to_text(p.limit))),
                          cell(p.ranks == 1  ? "computing only"
                               : p.simulated ? "event simulation"
                                             : "closed form")});
    answer.explanations.push_back(
        {fmt::format("step on {} ranks", p.ranks),
         "cost::predict_step, gradients overlapped with backward; closed form of a bucket: the "
         "ring's of cost/closed_form.hpp, on one link 2 (p-1) alpha + 2 (p-1)/p M beta",
         fmt::format("{} tokens a rank, bucket {}, {}", p.tokens / p.ranks, binary(p.bucket),
                     cost::to_text(network_of(q.step.machine, p.ranks).ring_link())),
         to_text(p.step)});
  }
  answer.tables.push_back(std::move(table));
  if (q.critical_batch) answer.tables.push_back(critical_batch_table(q, points));
  answer.notes = {"efficiency: tokens per second and rank, of those in the first row"};
  return answer;
}

}  // namespace annulet::plan
