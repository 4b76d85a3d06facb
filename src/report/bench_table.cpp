#include "annulet/report/bench_table.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "annulet/base/statistics.hpp"

namespace annulet::report {
namespace {

using Json = nlohmann::ordered_json;
using measure::Algorithm;
using measure::BenchRow;
using measure::CollectiveKind;

std::string microseconds(Seconds time) { return fmt::format("{:.4g}", time.count() * 1e6); }

std::string bytes(const std::optional<Bytes>& value) { return value ? fmt::format("{}", value->value()) : "-"; }

Json json(const std::optional<Bytes>& value) { return value ? Json(value->value()) : Json(nullptr); }

Json row_json(const BenchRow& row) {
  return {{"collective", measure::to_text(row.collective)},
          {"algorithm", measure::to_text(row.algorithm)},
          {"bytes", row.bytes.value()},
          {"type", measure::to_text(row.type)},
          {"ranks", row.ranks},
          {"time_p50_seconds", row.p50.count()},
          {"time_p99_seconds", row.p99.count()},
          {"algbw", row.algbw.value()},
          {"busbw", row.busbw.value()},
          {"wrong", row.wrong},
          {"wire_bytes", json(row.wire)},
          {"planned_wire_bytes", json(row.planned)},
          {"predicted_seconds", row.predicted ? Json(row.predicted->count()) : Json(nullptr)}};
}

}  // namespace

std::string bench_header(CollectiveKind collective) {
  const bool all_reduce = collective == CollectiveKind::all_reduce, gathers = collective == CollectiveKind::all_gather;
  std::string text = fmt::format(
      "{}: size = bytes of the whole vector, {}; algbw = size / p50; busbw = algbw x {}(p-1)/p; times of the slowest "
      "rank in us, bandwidths in GB/s\n",
      measure::to_text(collective),
      all_reduce ? "each rank's"
      : gathers  ? "each rank's output"
                 : "each rank's input",
      all_reduce ? "2" : "");
  text +=
      "payload: bytes that rank 0 originates; wire: bytes sent by all ranks, counted = planned; predicted by event "
      "simulation of the plans; residual = p50 / predicted - 1\n";
  return text + fmt::format("{:>10} {:>10} {:>7} {:>5} {:>10} {:>10} {:>8} {:>8} {:>6} {:>10} {:>11} {:>10} {:>9}\n",
                            "size", "count", "type", "algo", "p50", "p99", "algbw", "busbw", "#wrong", "payload",
                            "wire", "predicted", "residual");
}

std::string bench_line(const BenchRow& row) {
  const auto residual = row.residual();
  return fmt::format("{:>10} {:>10} {:>7} {:>5} {:>10} {:>10} {:>8.3f} {:>8.3f} {:>6} {:>10} {:>11} {:>10} {:>9}\n",
                     row.bytes.value(), row.count, measure::to_text(row.type), measure::to_text(row.algorithm),
                     microseconds(row.p50), microseconds(row.p99), row.algbw.value() / 1e9, row.busbw.value() / 1e9,
                     row.wrong, row.payload.value(), bytes(row.wire),
                     row.predicted ? microseconds(*row.predicted) : "-",
                     residual ? fmt::format("{:+.1f} %", 100 * *residual) : "-");
}

std::string bench_summary(const std::vector<BenchRow>& rows) {
  std::map<Bytes, Seconds> ours;
  std::vector<double> residuals;
  std::string ratios;
  for (const BenchRow& row : rows) {
    if (row.algorithm == Algorithm::ring) ours[row.bytes] = row.p50;
    if (const auto residual = row.residual()) residuals.push_back(std::abs(*residual));
  }
  for (const BenchRow& row : rows) {
    if (row.algorithm != Algorithm::mpi || !ours.contains(row.bytes)) continue;
    ratios += fmt::format("{}{} {:.2f}", ratios.empty() ? "" : ", ", to_text(row.bytes), row.p50 / ours[row.bytes]);
  }
  std::string text;
  if (!ratios.empty()) text += fmt::format("speed of the ring over MPI's own: {}\n", ratios);
  if (const auto middle = median(residuals)) text += fmt::format("median |residual| {:.1f} %\n", 100 * *middle);
  return text;
}

std::string bench_json(const std::vector<BenchRow>& rows) {
  Json all = Json::array();
  for (const BenchRow& row : rows) all.push_back(row_json(row));
  return Json{{"rows", all}}.dump(2) + '\n';
}

std::string bench_csv(const std::vector<BenchRow>& rows) {
  std::string text =
      "collective,algorithm,bytes,count,type,ranks,rounds,time_p50_seconds,time_p99_seconds,algbw,busbw,wrong,"
      "payload_bytes,wire_bytes,planned_wire_bytes,predicted_seconds,residual\n";
  const auto optional = [](const auto& value) { return value ? fmt::format("{}", *value) : std::string(); };
  for (const BenchRow& row : rows) {
    const auto number = [](const std::optional<Bytes>& b) { return b ? fmt::format("{}", b->value()) : std::string(); };
    text += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", measure::to_text(row.collective),
                        measure::to_text(row.algorithm), row.bytes.value(), row.count, measure::to_text(row.type),
                        row.ranks, row.rounds, row.p50.count(), row.p99.count(), row.algbw.value(), row.busbw.value(),
                        row.wrong, row.payload.value(), number(row.wire), number(row.planned),
                        row.predicted ? fmt::format("{}", row.predicted->count()) : "", optional(row.residual()));
  }
  return text;
}

}  // namespace annulet::report
