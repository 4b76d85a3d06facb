#include "race.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "annulet/base/error.hpp"
#include "annulet/base/statistics.hpp"

namespace annulet::measure {
namespace {

using schedule::Collective;

constexpr int kMostTimed = 2000, kFewestTimed = 7;
constexpr int kWarmUps = 2;

comm::Number number(NumberType type) {
  if (type == NumberType::float64) return comm::Number::float64;
  return type == NumberType::int32 ? comm::Number::int32 : comm::Number::float32;
}

comm::NativeReduction native(Reduction reduction) {
  return reduction == Reduction::maximum ? comm::NativeReduction::maximum : comm::NativeReduction::sum;
}

double bus_factor(Collective collective, int world) {
  const double part = static_cast<double>(world - 1) / world;
  if (collective == Collective::all_reduce) return 2 * part;
  return collective == Collective::reduce_scatter || collective == Collective::all_gather ? part : 1;
}

// "predicted 12 us; direct 15 us, ring 19 us", the three best.
std::string reason_of(const std::vector<cost::PricedExecution>& priced) {
  std::string text = fmt::format("predicted {}", annulet::to_text(priced.front().time));
  for (std::size_t i = 1; i < std::min<std::size_t>(3, priced.size()); ++i) {
    text += fmt::format("{} {} {}", i == 1 ? ";" : ",", to_text(priced[i].execution.algorithm),
                        annulet::to_text(priced[i].time));
  }
  return text;
}

}  // namespace

Race::Race(const Course& course, std::unique_ptr<comm::Transport> transport, Collective collective, Elements elements)
    : course_(course),
      collective_(collective),
      elements_(elements),
      engine_(std::move(transport), {collectives::Driver::blocking, course.options.deadline, 1}) {
  start_.set_ahead(course.ahead);
  for (const Contender& contender : course.options.contenders) enter(contender);
}

bool Race::reduces() const { return collective_ != Collective::broadcast && collective_ != Collective::all_gather; }

void Race::enter(const Contender& contender) {
  const bool one_algorithm = contender.kind == Contender::Kind::algorithm;
  if (one_algorithm && !has_algorithm(collective_, contender.algorithm)) return;
  Entrant entrant;
  BenchRow& row = entrant.row;
  row.collective = collective_, row.contender = contender;
  row.count = elements_, row.bytes = element() * elements_;
  row.type = course_.options.type, row.ranks = world();
  const bool gathers = collective_ == Collective::all_gather;
  row.payload = gathers ? element() * chunk(0).count : row.bytes;
  if (contender.is_ours()) {
    decide(row);
    declare(entrant);
    predict(row);
  } else if (!native_) {
    native_.emplace(course_.communicator, number(row.type), native(course_.options.reduction));
  }
  entrants_.push_back(std::move(entrant));
}

// `auto` is rank 0's: processors may differ in the last bit of a double, and then in their choice.
void Race::decide(BenchRow& row) const {
  const BenchOptions& options = course_.options;
  row.execution = {row.contender.algorithm, options.segment, options.slots};
  if (row.contender.kind != Contender::Kind::automatic) return;
  if (rank() == 0) {
    const bool asked_for = schedule::range_of(options.ranges, row.bytes) != nullptr;
    row.execution = cost::cheapest_execution(task(), options.known, options.ranges).execution;
    row.reason = asked_for ? "as asked for" : reason_of(cost::priced_executions(task(), options.known));
  }
  course_.communicator.broadcast(std::as_writable_bytes(std::span(&*row.execution, 1)), 0);
  row.reason = course_.communicator.broadcast(row.reason, 0);
}

schedule::Plan Race::plan(const schedule::Execution& execution) const {
  auto shape = schedule::plan_shape(execution, rank(), world(), elements_, element());
  shape.root = course_.options.root;
  return schedule::make_plan(collective_, execution.algorithm, shape);
}

void Race::declare(Entrant& entrant) {
  BenchRow& row = entrant.row;
  auto plan = std::make_shared<const schedule::Plan>(this->plan(*row.execution));
  row.planned = element() * sum(schedule::sent_elements(*plan));
  row.formula = element() * planned_total(collective_, row.execution->algorithm, elements_, world());
  entrant.operation =
      engine_.declare({fmt::format("{} of {} by {}", to_text(collective_), annulet::to_text(row.bytes),
                                   to_text(row.execution->algorithm)),
                       comm::Purpose::other, course_.vector.element(), std::move(plan), course_.vector.bytes(whole()),
                       [this](std::span<std::byte> data) { finish(data); }});
}

// What has not travelled is rounded where all ranks shall have the same.
void Race::finish(std::span<std::byte> data) const {
  if (collective_ == Collective::all_reduce) collectives::round_through_wire(course_.vector.element(), data);
  if (reduces() && course_.options.reduction == Reduction::average) course_.vector.divide(whole(), world());
}

std::int64_t Race::sum(std::int64_t value) const {
  return std::llround(course_.communicator.sum(static_cast<double>(value)));
}

// Rank 0's, since simulating many ranks takes memory.
void Race::predict(BenchRow& row) const {
  Seconds time{0};
  if (rank() == 0) time = cost::task_time(task(), *row.execution, course_.options.network, 2'000'000);
  course_.communicator.broadcast(std::as_writable_bytes(std::span(&time, 1)), 0);
  row.predicted = time;
}

std::vector<BenchRow> Race::run() {
  for (Entrant& entrant : entrants_) {
    const Bytes before = sent();
    entrant.row.wrong = verify(entrant);
    if (entrant.operation) entrant.row.wire = Bytes(sum((sent() - before).value()));
  }
  if (!entrants_.empty()) add_times();
  std::vector<BenchRow> rows;
  for (Entrant& entrant : entrants_) {
    entrant.row.wrong += verify(entrant);  // also after hundreds of runs
    rows.push_back(entrant.row);
  }
  return rows;
}

// Once, begun by all ranks together; this rank's time. Cards that let bursts pass have become idle before, as
// predictions have it.
Seconds Race::run_once(const Entrant& entrant) {
  const cost::Link& card = course_.options.network.between;
  if (card.burst > Bytes(0)) std::this_thread::sleep_for(card.beta * card.burst);
  start_.wait(course_.communicator.maximum(start_.proposal()));
  const Instant start = Clock::now();
  if (entrant.operation) {
    engine_.launch(*entrant.operation);
    engine_.wait(*entrant.operation);
  } else {
    run_native();
  }
  return Clock::now() - start;
}

void Race::run_native() {
  const std::span<std::byte> data = course_.vector.bytes(whole());
  std::vector<int> counts;
  for (int r = 0; r < world(); ++r) counts.push_back(static_cast<int>(chunk(r).count));
  switch (collective_) {
    case Collective::all_reduce:
      return native_->all_reduce(data);
    case Collective::reduce_scatter:
      return native_->reduce_scatter(data, course_.chunk.bytes({0, chunk(rank()).count}), counts);
    case Collective::all_gather:
      return native_->all_gather(data, counts);
    case Collective::broadcast:
      return native_->broadcast(data, course_.options.root);
    case Collective::reduce:
      return native_->reduce(data, course_.options.root);
  }
}

void Race::prepare_inputs() {
  course_.vector.clear(whole());
  if (collective_ == Collective::broadcast && rank() != course_.options.root) return;
  course_.vector.fill(collective_ == Collective::all_gather ? chunk(rank()) : whole(), rank());
}

// On this rank, of those elements whose value the collective says.
std::int64_t Race::count_wrong() const {
  const int root = course_.options.root;
  std::int64_t wrong = 0;
  switch (collective_) {
    case Collective::all_reduce:
      return course_.vector.count_wrong(whole(), 0, world());
    case Collective::reduce_scatter:
      return course_.vector.count_wrong(chunk(rank()), 0, world());
    case Collective::all_gather:
      for (int r = 0; r < world(); ++r) wrong += course_.vector.count_wrong(chunk(r), r, r + 1);
      return wrong;
    case Collective::broadcast:
      return course_.vector.count_wrong(whole(), root, root + 1);
    case Collective::reduce:
      return rank() == root ? course_.vector.count_wrong(whole(), 0, world()) : 0;
  }
  return wrong;
}

// Runs with known inputs; elements that are wrong, over all ranks.
std::int64_t Race::verify(const Entrant& entrant) {
  prepare_inputs();
  run_once(entrant);
  const schedule::Interval mine = chunk(rank());
  if (!entrant.operation && collective_ == Collective::reduce_scatter) {
    std::ranges::copy(course_.chunk.bytes({0, mine.count}), course_.vector.bytes(mine).begin());
  }
  return sum(count_wrong());
}

// On zeros, whose sums stay zeros. All take turns, so that the machine is the same for all of them; every other round
// backwards, since what ran before decides which rank comes late.
void Race::add_times() {
  course_.vector.clear(whole());
  const Instant start = Clock::now();
  for (int warm_up = 0; warm_up < kWarmUps; ++warm_up) {
    for (const Entrant& entrant : entrants_) run_once(entrant);
  }
  const double once = course_.communicator.maximum(Seconds(Clock::now() - start).count()) / kWarmUps;
  const double wished = course_.options.per_size.count() / once;
  const int rounds = static_cast<int>(std::clamp<double>(wished, kFewestTimed, kMostTimed));
  std::vector<std::vector<double>> times(entrants_.size());
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t turn = 0; turn < entrants_.size(); ++turn) {
      const std::size_t e = round % 2 == 0 ? turn : entrants_.size() - 1 - turn;
      times[e].push_back(run_once(entrants_[e]).count());
    }
  }
  for (std::size_t e = 0; e < entrants_.size(); ++e) summarise(entrants_[e].row, slowest(times[e]));
}

// [round], over the ranks.
std::vector<Seconds> Race::slowest(const std::vector<double>& mine) const {
  const std::vector<double> all = course_.communicator.all_gather(std::span<const double>(mine));
  std::vector<Seconds> result(mine.size());
  for (std::size_t k = 0; k < all.size(); ++k) {
    result[k % mine.size()] = std::max(result[k % mine.size()], Seconds(all[k]));
  }
  return result;
}

void Race::summarise(BenchRow& row, const std::vector<Seconds>& times) const {
  row.rounds = static_cast<int>(times.size());
  row.p50 = *median(times), row.p99 = *quantile(times, 0.99);
  row.algbw = row.bytes / row.p50;
  row.busbw = row.algbw * bus_factor(collective_, world());
}

}  // namespace annulet::measure
