#include "annulet/measure/bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "annulet/base/error.hpp"
#include "annulet/base/statistics.hpp"
#include "annulet/collectives/engine.hpp"
#include "annulet/comm/native_collectives.hpp"
#include "annulet/cost/closed_form.hpp"
#include "annulet/cost/simulate.hpp"
#include "annulet/schedule/ring.hpp"
#include "bench_vector.hpp"

namespace annulet::measure {
namespace {

using schedule::Interval;

constexpr int kFewestRepeats = 7, kMostRepeats = 2000;
constexpr int kWarmUps = 2;
constexpr std::size_t kMostSimulatedSteps = 2'000'000;  // of all ranks' plans; above, closed forms serve

comm::Number number(NumberType type) {
  if (type == NumberType::float64) return comm::Number::float64;
  return type == NumberType::int32 ? comm::Number::int32 : comm::Number::float32;
}

// Everything about one size: chunks and plans.
class Size {
 public:
  Size(const BenchOptions& options, Bytes element, Elements elements, int world)
      : options_(options), element_(element), elements_(elements), world_(world) {}

  Elements elements() const { return elements_; }
  Bytes bytes() const { return element_ * elements_; }
  Interval whole() const { return {0, elements_}; }
  Interval chunk(int rank) const { return schedule::chunk(elements_, world_, rank); }

  std::vector<int> counts() const {
    std::vector<int> counts;
    for (int r = 0; r < world_; ++r) counts.push_back(static_cast<int>(chunk(r).count));
    return counts;
  }

  schedule::Plan plan(int rank) const {
    const Elements segment = std::max<Elements>(1, options_.segment.value() / element_.value());
    const schedule::RingShape shape{rank, world_, elements_, segment, options_.slots};
    switch (options_.collective) {
      case CollectiveKind::all_reduce:
        return schedule::ring_all_reduce(shape);
      case CollectiveKind::reduce_scatter:
        return schedule::ring_reduce_scatter(shape);
      case CollectiveKind::all_gather:
        break;
    }
    return schedule::ring_all_gather(shape);
  }

  // Over all ranks.
  Bytes wire_by_formula() const {
    const Elements total = schedule::ring_all_reduce_total(elements_, world_);
    return element_ * (options_.collective == CollectiveKind::all_reduce ? total : total / 2);
  }

  Bytes payload(int rank) const {
    return options_.collective == CollectiveKind::all_gather ? element_ * chunk(rank).count : bytes();
  }

  // Bytes by the plans of all ranks, and what they take on the network.
  struct Forecast {
    Bytes planned{0};
    Seconds time{0};
  };
  Forecast forecast() const {
    if (plan(0).steps.size() * static_cast<std::size_t>(world_) > kMostSimulatedSteps) return by_closed_form();
    std::vector<schedule::Plan> plans;
    cost::Collective collective{{}, element_, std::vector<Seconds>(static_cast<std::size_t>(world_))};
    Forecast forecast;
    for (int r = 0; r < world_; ++r) plans.push_back(plan(r));
    for (const schedule::Plan& plan : plans) {
      collective.plans.push_back(&plan);
      forecast.planned += element_ * schedule::sent_elements(plan);
    }
    forecast.time = std::ranges::max(cost::simulate(std::span(&collective, 1), options_.network).front());
    return forecast;
  }

 private:
  Forecast by_closed_form() const {
    const cost::Link& link = options_.network.ring_link();
    const bool both = options_.collective == CollectiveKind::all_reduce;
    return {wire_by_formula(), both ? cost::ring_all_reduce_time(bytes(), world_, link)
                                    : cost::ring_reduce_scatter_time(bytes(), world_, link)};
  }

  const BenchOptions& options_;
  Bytes element_;
  Elements elements_;
  int world_;
};

std::vector<Elements> sizes(const BenchOptions& options, Bytes element) {
  std::vector<Elements> result;
  Elements elements = std::max<Elements>(1, options.smallest.value() / element.value());
  for (; element * elements <= options.largest; elements *= 2) result.push_back(elements);
  if (result.empty()) result.push_back(elements);
  return result;
}

class Bench {
 public:
  Bench(const comm::Communicator& communicator, std::unique_ptr<comm::Transport> transport, const BenchOptions& options)
      : options_(options), world_(communicator) {
    const Bytes element(options.type == NumberType::float64 ? 8 : 4);
    for (const Elements elements : sizes(options, element)) sizes_.emplace_back(options_, element, elements, world());
    vector_ = make_bench_vector(options.type, sizes_.back().elements());
    chunk_ = make_bench_vector(options.type, sizes_.back().elements() / world() + 1);
    const bool native = std::ranges::find(options.algorithms, Algorithm::mpi) != options.algorithms.end();
    if (native) native_.emplace(world_, number(options.type));
    engine_.emplace(std::move(transport),
                    collectives::EngineOptions{collectives::Driver::blocking, options.deadline, 1});
    for (const Size& size : sizes_) {
      operations_.push_back(engine_->declare(
          {fmt::format("benchmark of {}", annulet::to_text(size.bytes())), comm::Purpose::other, vector_->element(),
           std::make_shared<const schedule::Plan>(size.plan(rank())), vector_->bytes(size.whole())}));
    }
  }

  std::vector<BenchRow> run(const std::function<void(const BenchRow&)>& on_row) {
    std::vector<BenchRow> rows;
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      for (BenchRow& row : measure(i)) {
        if (on_row) on_row(row);
        rows.push_back(row);
      }
    }
    return rows;
  }

 private:
  int rank() const { return world_.rank(); }
  int world() const { return world_.size(); }

  // Once after a barrier; this rank's time.
  Seconds run_once(Algorithm algorithm, std::size_t i) {
    world_.barrier();
    const Instant start = Clock::now();
    if (algorithm == Algorithm::ring) {
      engine_->launch(operations_[i]);
      engine_->wait(operations_[i]);
    } else {
      run_native(sizes_[i]);
    }
    return Clock::now() - start;
  }

  void run_native(const Size& size) {
    const std::span<std::byte> data = vector_->bytes(size.whole());
    switch (options_.collective) {
      case CollectiveKind::all_reduce:
        return native_->all_reduce(data);
      case CollectiveKind::reduce_scatter:
        return native_->reduce_scatter(data, chunk_->bytes({0, size.chunk(rank()).count}), size.counts());
      case CollectiveKind::all_gather:
        return native_->all_gather(data, size.counts());
    }
  }

  std::vector<BenchRow> measure(std::size_t i) {
    std::vector<BenchRow> rows;
    const Size::Forecast forecast = forecast_of(sizes_[i]);
    for (const Algorithm algorithm : options_.algorithms) {
      BenchRow row{options_.collective, algorithm, sizes_[i].bytes(), sizes_[i].elements(), options_.type, world()};
      row.payload = sizes_[i].payload(0);
      const Bytes before = sent();
      row.wrong = verify(algorithm, i);
      if (algorithm == Algorithm::ring) {
        row.wire = Bytes(static_cast<std::int64_t>(world_.sum((sent() - before).as_double())));
        row.planned = forecast.planned, row.formula = sizes_[i].wire_by_formula(), row.predicted = forecast.time;
      }
      rows.push_back(row);
    }
    add_times(rows, i);
    for (BenchRow& row : rows) row.wrong += verify(row.algorithm, i);  // also after hundreds of runs
    return rows;
  }

  // Rank 0's, since simulating many ranks takes memory.
  Size::Forecast forecast_of(const Size& size) const {
    Size::Forecast forecast;
    if (rank() == 0) forecast = size.forecast();
    world_.broadcast(std::as_writable_bytes(std::span(&forecast, 1)), 0);
    return forecast;
  }

  Bytes sent() const { return engine_->traffic()[comm::Purpose::other]; }

  // Runs with known inputs; elements that are wrong, over all ranks.
  std::int64_t verify(Algorithm algorithm, std::size_t i) {
    const Size& size = sizes_[i];
    const Interval mine = size.chunk(rank());
    const bool gathers = options_.collective == CollectiveKind::all_gather;
    vector_->clear(size.whole());
    vector_->fill(gathers ? mine : size.whole(), rank());
    run_once(algorithm, i);
    std::int64_t wrong = 0;
    switch (options_.collective) {
      case CollectiveKind::all_reduce:
        wrong = vector_->count_wrong(size.whole(), 0, world());
        break;
      case CollectiveKind::reduce_scatter:
        if (algorithm == Algorithm::mpi)
          std::ranges::copy(chunk_->bytes({0, mine.count}), vector_->bytes(mine).begin());
        wrong = vector_->count_wrong(mine, 0, world());
        break;
      case CollectiveKind::all_gather:
        for (int r = 0; r < world(); ++r) wrong += vector_->count_wrong(size.chunk(r), r, r + 1);
        break;
    }
    return std::llround(world_.sum(static_cast<double>(wrong)));
  }

  // On zeros, whose sums stay zeros. Algorithms take turns, so that the machine is the same for all of them.
  void add_times(std::vector<BenchRow>& rows, std::size_t i) {
    vector_->clear(sizes_[i].whole());
    const Instant start = Clock::now();
    for (int warm_up = 0; warm_up < kWarmUps; ++warm_up) {
      for (const BenchRow& row : rows) run_once(row.algorithm, i);
    }
    const double once = world_.maximum(Seconds(Clock::now() - start).count()) / kWarmUps;
    const int rounds =
        static_cast<int>(std::clamp<double>(options_.share.count() / once, kFewestRepeats, kMostRepeats));
    std::vector<std::vector<double>> times(rows.size());
    for (int round = 0; round < rounds; ++round) {
      for (std::size_t a = 0; a < rows.size(); ++a) times[a].push_back(run_once(rows[a].algorithm, i).count());
    }
    for (std::size_t a = 0; a < rows.size(); ++a) summarise(rows[a], slowest(times[a]));
  }

  // [round], over the ranks.
  std::vector<Seconds> slowest(const std::vector<double>& mine) const {
    const std::vector<double> all = world_.all_gather(std::span<const double>(mine));
    std::vector<Seconds> result(mine.size());
    for (std::size_t k = 0; k < all.size(); ++k) {
      result[k % mine.size()] = std::max(result[k % mine.size()], Seconds(all[k]));
    }
    return result;
  }

  void summarise(BenchRow& row, const std::vector<Seconds>& times) const {
    row.rounds = static_cast<int>(times.size());
    row.p50 = *median(times), row.p99 = *quantile(times, 0.99);
    row.algbw = row.bytes / row.p50;
    const double part = static_cast<double>(world() - 1) / world();
    row.busbw = row.algbw * (options_.collective == CollectiveKind::all_reduce ? 2 * part : part);
  }

  BenchOptions options_;
  comm::Communicator world_;
  std::vector<Size> sizes_;
  std::unique_ptr<BenchVector> vector_, chunk_;
  std::optional<comm::NativeCollectives> native_;
  std::optional<collectives::Engine> engine_;  // its operations work on the vector
  std::vector<collectives::OperationId> operations_;
};

}  // namespace

std::string_view to_text(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return "all_reduce";
    case CollectiveKind::reduce_scatter:
      return "reduce_scatter";
    case CollectiveKind::all_gather:
      return "all_gather";
  }
  return "unknown";
}

std::string_view to_text(Algorithm algorithm) { return algorithm == Algorithm::ring ? "ring" : "mpi"; }

std::string_view to_text(NumberType type) {
  if (type == NumberType::float64) return "double";
  return type == NumberType::int32 ? "int32" : "float";
}

std::optional<double> BenchRow::residual() const {
  if (!predicted || predicted->count() <= 0) return std::nullopt;
  return p50 / *predicted - 1;
}

void require_right(std::span<const BenchRow> rows) {
  for (const BenchRow& row : rows) {
    if (row.wrong > 0) {
      throw RunError({fmt::format("{} elements of {} by {} at {} bytes are wrong", row.wrong, to_text(row.collective),
                                  to_text(row.algorithm), row.bytes.value())});
    }
    if (!row.bytes_agree()) {
      throw RunError(
          {fmt::format("{} at {} bytes: {} bytes were sent, {} planned, the formula says {}", to_text(row.collective),
                       row.bytes.value(), row.wire->value(), row.planned->value(), row.formula->value()),
           "measured and predicted would not be of the same thing", ""});
    }
  }
}

std::vector<BenchRow> run_bench(const comm::Communicator& communicator, const TransportFactory& make_transport,
                                const BenchOptions& options, const std::function<void(const BenchRow&)>& on_row) {
  ANNULET_EXPECTS(!options.algorithms.empty() && options.smallest <= options.largest,
                  "a benchmark has an algorithm and a size");
  auto transport = make_transport();
  ANNULET_EXPECTS(transport && transport->world() == communicator.size(),
                  "transport and communicator are of one world");
  return Bench(communicator, std::move(transport), options).run(on_row);
}

}  // namespace annulet::measure
