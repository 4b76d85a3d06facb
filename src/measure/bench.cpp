#include "annulet/measure/bench.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "annulet/base/error.hpp"
#include "annulet/measure/clock_offset.hpp"
#include "race.hpp"

namespace annulet::measure {
namespace {

constexpr int kClockExchanges = 8;  // clocks of hosts drift apart: they are compared before each size

std::vector<Elements> bench_sizes(const BenchOptions& options) {
  const Bytes element = bytes_of(options.type);
  std::vector<Elements> result;
  Elements elements = std::max<Elements>(1, options.smallest.value() / element.value());
  for (; element * elements <= options.largest; elements *= options.factor) result.push_back(elements);
  if (result.empty()) result.push_back(elements);
  return result;
}

}  // namespace

std::string_view to_text(NumberType type) {
  switch (type) {
    case NumberType::float32:
      return "float";
    case NumberType::float64:
      return "double";
    case NumberType::int32:
      return "int32";
    case NumberType::bfloat16:
      return "bfloat16";
  }
  return "unknown";
}

std::string_view to_text(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum:
      return "sum";
    case Reduction::average:
      return "average";
    case Reduction::maximum:
      return "max";
  }
  return "unknown";
}

std::string_view to_text(const Contender& contender) {
  switch (contender.kind) {
    case Contender::Kind::algorithm:
      return to_text(contender.algorithm);
    case Contender::Kind::automatic:
      return "auto";
    case Contender::Kind::mpi:
      return "mpi";
  }
  return "unknown";
}

Bytes bytes_of(NumberType type) {
  if (type == NumberType::bfloat16) return Bytes(2);
  return Bytes(type == NumberType::float64 ? 8 : 4);
}

std::optional<double> BenchRow::residual() const {
  if (!predicted || predicted->count() <= 0) return std::nullopt;
  return p50 / *predicted - 1;
}

void require_right(std::span<const BenchRow> rows) {
  for (const BenchRow& row : rows) {
    const std::string what =
        fmt::format("{} by {} at {} bytes", to_text(row.collective), to_text(row.contender), row.bytes.value());
    if (row.wrong > 0) throw RunError({fmt::format("{}: {} elements are wrong", what, row.wrong)});
    if (row.bytes_agree()) continue;
    throw RunError({fmt::format("{}: {} bytes were sent, {} planned, the formula says {}", what, row.wire->value(),
                                row.planned->value(), row.formula->value()),
                    "measured and predicted would not be of the same thing", ""});
  }
}

std::vector<BenchRow> run_bench(const comm::Communicator& communicator, const TransportFactory& make_transport,
                                const BenchOptions& options, const std::function<void(const BenchRow&)>& on_row) {
  ANNULET_EXPECTS(!options.contenders.empty() && options.smallest <= options.largest && options.factor > 1,
                  "a benchmark has somebody to take part and a size");
  ANNULET_EXPECTS(options.type != NumberType::bfloat16 || communicator.size() <= kMostBfloat16Ranks,
                  "sums are exact in bfloat16");
  const std::vector<Elements> sizes = bench_sizes(options);
  const auto vector = make_bench_vector(options.type, sizes.back(), options.reduction);
  const auto chunk = make_bench_vector(options.type, sizes.back() / communicator.size() + 1, options.reduction);
  Course course{communicator, options, *vector, *chunk};
  std::vector<BenchRow> rows;
  for (const schedule::Collective collective : options.collectives) {
    for (const Elements elements : sizes) {
      auto transport = make_transport();
      ANNULET_EXPECTS(transport && transport->world() == communicator.size(),
                      "transport and communicator are of one world");
      if (options.network.nodes() > 1) {
        course.ahead = clock_offset(transport_over(communicator), kClockExchanges, options.deadline).ahead;
      }
      for (BenchRow& row : Race(course, std::move(transport), collective, elements).run()) {
        if (on_row) on_row(row);
        rows.push_back(std::move(row));
      }
    }
  }
  return rows;
}

}  // namespace annulet::measure
