#include "annulet/report/bench_table.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "annulet/base/statistics.hpp"

namespace annulet::report {
namespace {

using Json = nlohmann::ordered_json;
using measure::BenchRow;
using measure::Contender;
using schedule::Collective;

std::string microseconds(Seconds time) { return fmt::format("{:.4g}", time.count() * 1e6); }

std::string bytes(const std::optional<Bytes>& value) { return value ? fmt::format("{}", value->value()) : "-"; }

Json json(const std::optional<Bytes>& value) { return value ? Json(value->value()) : Json(nullptr); }

Json row_json(const BenchRow& row) {
  return {{"collective", to_text(row.collective)},
          {"algorithm", to_text(row.contender)},
          {"executed", row.execution ? Json(to_text(row.execution->algorithm)) : Json(nullptr)},
          {"segment_bytes", row.execution ? Json(row.execution->segment.value()) : Json(nullptr)},
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

const char* whose_vector(Collective collective) {
  switch (collective) {
    case Collective::all_gather:
      return "each rank's output";
    case Collective::reduce_scatter:
      return "each rank's input";
    case Collective::broadcast:
      return "the root's";
    default:
      return "each rank's";
  }
}

const char* bus_factor(Collective collective) {
  if (collective == Collective::all_reduce) return " x 2(p-1)/p";
  return collective == Collective::reduce_scatter || collective == Collective::all_gather ? " x (p-1)/p" : "";
}

}  // namespace

std::string bench_header(Collective collective) {
  std::string text = fmt::format(
      "{}: size = bytes of the whole vector, {}; algbw = size / p50; busbw = algbw{}; times of the slowest rank in us, "
      "bandwidths in GB/s\n",
      to_text(collective), whose_vector(collective), bus_factor(collective));
  text +=
      "payload: bytes that rank 0 originates; wire: bytes sent by all ranks, counted = planned; predicted by event "
      "simulation of the plans; residual = p50 / predicted - 1\n";
  return text + fmt::format("{:>10} {:>10} {:>8} {:<26} {:>10} {:>10} {:>8} {:>8} {:>6} {:>10} {:>11} {:>10} {:>9}\n",
                            "size", "count", "type", "algorithm", "p50", "p99", "algbw", "busbw", "#wrong", "payload",
                            "wire", "predicted", "residual");
}

std::string bench_line(const BenchRow& row) {
  const auto residual = row.residual();
  std::string text =
      fmt::format("{:>10} {:>10} {:>8} {:<26} {:>10} {:>10} {:>8.3f} {:>8.3f} {:>6} {:>10} {:>11} {:>10} {:>9}\n",
                  row.bytes.value(), row.count, measure::to_text(row.type), to_text(row.contender),
                  microseconds(row.p50), microseconds(row.p99), row.algbw.value() / 1e9, row.busbw.value() / 1e9,
                  row.wrong, row.payload.value(), bytes(row.wire), row.predicted ? microseconds(*row.predicted) : "-",
                  residual ? fmt::format("{:+.1f} %", 100 * *residual) : "-");
  if (row.contender.kind != Contender::Kind::automatic) return text;
  return text + fmt::format("{:>31}auto: {} ({})\n", "", to_text(*row.execution), row.reason);
}

std::string bench_summary(const std::vector<BenchRow>& rows) {
  std::map<std::pair<Collective, Bytes>, Seconds> native;
  std::map<std::string, std::string> ratios;
  std::vector<double> residuals;
  for (const BenchRow& row : rows) {
    if (!row.contender.is_ours()) native[{row.collective, row.bytes}] = row.p50;
    if (const auto residual = row.residual()) residuals.push_back(std::abs(*residual));
  }
  for (const BenchRow& row : rows) {
    const auto mpi = native.find({row.collective, row.bytes});
    if (!row.contender.is_ours() || mpi == native.end()) continue;
    std::string& text = ratios[fmt::format("{} by {}", to_text(row.collective), to_text(row.contender))];
    text += fmt::format("{}{} {:.2f}", text.empty() ? "" : ", ", to_text(row.bytes), mpi->second / row.p50);
  }
  std::string text;
  for (const auto& [name, ratio] : ratios) text += fmt::format("speed over MPI's own, {}: {}\n", name, ratio);
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
      "payload_bytes,wire_bytes,planned_wire_bytes,predicted_seconds,residual,executed,segment_bytes\n";
  const auto optional = [](const auto& value) { return value ? fmt::format("{}", *value) : std::string(); };
  for (const BenchRow& row : rows) {
    const auto number = [](const std::optional<Bytes>& b) { return b ? fmt::format("{}", b->value()) : std::string(); };
    text += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", to_text(row.collective),
                        to_text(row.contender), row.bytes.value(), row.count, measure::to_text(row.type), row.ranks,
                        row.rounds, row.p50.count(), row.p99.count(), row.algbw.value(), row.busbw.value(), row.wrong,
                        row.payload.value(), number(row.wire), number(row.planned),
                        row.predicted ? fmt::format("{}", row.predicted->count()) : "", optional(row.residual()),
                        row.execution ? to_text(row.execution->algorithm) : "",
                        row.execution ? fmt::format("{}", row.execution->segment.value()) : "");
  }
  return text;
}

}  // namespace annulet::report
