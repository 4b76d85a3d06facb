#include "annulet/report/closing_table.hpp"

#include <fmt/format.h>

#include <iterator>
#include <map>
#include <set>

#include "annulet/base/statistics.hpp"
#include "annulet/report/memory_table.hpp"
#include "compression_lines.hpp"

namespace annulet::report {
namespace {

struct Row {
  std::string name;
  Bytes payload{0}, wire{0};
  std::vector<Seconds> measured, predicted;
};

std::string milliseconds(const std::optional<Seconds>& time) {
  return time ? fmt::format("{:.3f}", time->count() * 1e3) : "-";
}

std::string print(const Row& row) {
  const auto p50 = median(row.measured), predicted = median(row.predicted);
  const bool known = p50 && predicted && predicted->count() > 0;
  return fmt::format("{:>8} {:>10} {:>10} {:>10} {:>10} {:>10} {:>9}\n", row.name, to_text(row.payload),
                     to_text(row.wire), milliseconds(p50), milliseconds(quantile(row.measured, 0.99)),
                     milliseconds(predicted), known ? fmt::format("{:+.1f} %", 100 * (*p50 / *predicted - 1)) : "-");
}

// The last `steps` sampled steps.
std::map<std::size_t, Row> rows_of(const std::vector<train::BucketRecord>& buckets, std::size_t steps) {
  std::map<std::size_t, Row> rows;
  std::set<long> sampled;
  for (const train::BucketRecord& record : buckets) sampled.insert(record.step);
  const std::size_t left_out = sampled.size() > steps ? sampled.size() - steps : 0;
  const long first = *std::next(sampled.begin(), static_cast<std::ptrdiff_t>(left_out));
  for (const train::BucketRecord& record : buckets) {
    if (record.step < first) continue;
    Row& row = rows[record.bucket];
    row.name = fmt::format("{}", record.bucket + 1);
    row.payload = record.bytes, row.wire = record.wire;
    row.measured.push_back(record.measured), row.predicted.push_back(record.predicted);
  }
  return rows;
}

Row step_row(const std::map<std::size_t, Row>& buckets, const train::Summary& summary) {
  Row row{"step", {}, {}, {}, {}};
  for (const auto& [index, bucket] : buckets) row.payload += bucket.payload, row.wire += bucket.wire;
  for (const train::StepCommunication& step : summary.communication) {
    row.measured.push_back(step.measured), row.predicted.push_back(step.predicted);
  }
  return row;
}

std::string_view collective_of(const train::Summary& summary) {
  if (is_sparse(summary)) return "All-gather";
  return summary.zero == 0 ? "All-reduce" : "Reduce-scatter";
}

std::string time_line(const std::vector<train::StepRecord>& steps) {
  std::vector<Seconds> data, forward, backward, exposed, optimizer, total;
  for (std::size_t i = steps.size() > 5 ? 5 : 0; i < steps.size(); ++i) {
    const train::StepSeconds& s = steps[i].seconds;
    data.push_back(s.data), forward.push_back(s.forward), backward.push_back(s.backward);
    exposed.push_back(s.exposed), optimizer.push_back(s.optimizer), total.push_back(s.total);
  }
  if (total.empty()) return "no steps were made\n";
  return fmt::format(
      "step = forward + backward + exposed + optimiser = {} + {} + {} + {} ms (medians of rank 0; data {}, whole step "
      "{} ms)\n",
      milliseconds(median(forward)), milliseconds(median(backward)), milliseconds(median(exposed)),
      milliseconds(median(optimizer)), milliseconds(median(data)), milliseconds(median(total)));
}

// What the exposed time waited for, collective by collective.
std::string exposed_line(const train::ExposedTimes& exposed, const train::Summary& summary) {
  const std::string gathers =
      summary.zero > 0 ? fmt::format(", all-gather of weights {}", milliseconds(exposed.weights)) : std::string();
  return fmt::format("exposed: {} of gradients {}{}, control record {} ms\n",
                     is_sparse(summary) ? "all-gather"
                     : summary.zero > 0 ? "reduce-scatter"
                                        : "all-reduce",
                     milliseconds(exposed.gradients), gathers, milliseconds(exposed.control));
}

// What one fixed order of the sums has cost.
std::string reproducible_line(const train::Summary& summary) {
  const train::ReproducibleCost& cost = *summary.reproducible_cost;
  std::string text = fmt::format("reproducible: passes and norm in micro-shards {} ms, by default {} ms: {:.2f} x",
                                 milliseconds(cost.in_micro_shards), milliseconds(cost.by_default),
                                 cost.in_micro_shards / cost.by_default);
  if (summary.dense_wire_per_step > Bytes(0)) {
    text +=
        fmt::format("; wire bytes {:.2f} x the default's", summary.planned_wire_per_step / summary.dense_wire_per_step);
  }
  return text + '\n';
}

}  // namespace

std::string closing_table(const train::Summary& summary, const std::vector<train::BucketRecord>& buckets,
                          const std::vector<train::StepRecord>& steps) {
  std::string text;
  if (!summary.communication.empty() && !buckets.empty()) {
    const auto rows = rows_of(buckets, summary.communication.size());
    text += fmt::format("\n{} of rank 0, {} sampled steps; times in ms, predicted by event simulation on\n{}\n",
                        collective_of(summary), summary.communication.size(), cost::to_text(summary.network));
    text += fmt::format("{:>8} {:>10} {:>10} {:>10} {:>10} {:>10} {:>9}\n", "bucket", "payload", "wire", "p50", "p99",
                        "predicted", "residual");
    for (const auto& [index, row] : rows) text += print(row);
    text += print(step_row(rows, summary));
    text += fmt::format("wire bytes per step over all ranks: {} counted = {} planned; control {}\n",
                        summary.wire_per_step.value(), summary.planned_wire_per_step.value(),
                        summary.control_per_step.value());
  }
  if (summary.ranks > 1 && summary.steps > 0) text += compression_lines(summary);
  text += '\n' + time_line(steps);
  if (summary.exposed && summary.ranks > 1) text += exposed_line(*summary.exposed, summary);
  if (summary.predicted_step && summary.median_step) {
    text += fmt::format("predicted before the run {} ms, measured {} ms (slowest rank's median): {:+.1f} %\n",
                        milliseconds(summary.predicted_step), milliseconds(summary.median_step),
                        100 * (*summary.median_step / *summary.predicted_step - 1));
    text += fmt::format("forward, without what it waited for: {} ms predicted, {} ms in this run\n",
                        milliseconds(summary.predicted_forward), milliseconds(summary.median_forward));
  }
  if (summary.reproducible_cost) text += reproducible_line(summary);
  if (summary.hidden_fraction)
    text += fmt::format("hidden behind computation: {:.0f} %; ", 100 * *summary.hidden_fraction);
  if (summary.mfu) {
    const bool recomputes = summary.hfu && *summary.hfu > *summary.mfu;
    text += fmt::format("MFU {:.1f} %{} of {} (FMA), large products reach {:.1f} %\n", 100 * *summary.mfu,
                        recomputes ? fmt::format(", HFU {:.1f} %,", 100 * *summary.hfu) : "", to_text(summary.peak),
                        100 * (summary.gemm / summary.peak));
  }
  return text + memory_table(summary);
}

}  // namespace annulet::report
