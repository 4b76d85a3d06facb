#pragma once
// One collective at one size: all that take part run in turns, are checked and timed.
#include <optional>

#include "annulet/collectives/engine.hpp"
#include "annulet/comm/native_collectives.hpp"
#include "bench_vector.hpp"
#include "common_start.hpp"

namespace annulet::measure {

// What all sizes and collectives share. The vectors hold the largest size, `chunk` a chunk of it.
struct Course {
  const comm::Communicator& communicator;
  const BenchOptions& options;
  BenchVector& vector;
  BenchVector& chunk;
  Seconds ahead{0};  // this rank's clock, of rank 0's
};

class Race {
 public:
  // Collective over the communicator, as is run().
  Race(const Course& course, std::unique_ptr<comm::Transport> transport, schedule::Collective collective,
       Elements elements);

  // A row for each that takes part; the same on every rank.
  std::vector<BenchRow> run();

 private:
  struct Entrant {
    BenchRow row;
    std::optional<collectives::OperationId> operation{};
  };

  int rank() const { return course_.communicator.rank(); }
  int world() const { return course_.communicator.size(); }
  schedule::Interval whole() const { return {0, elements_}; }
  schedule::Interval chunk(int rank) const { return schedule::chunk(elements_, world(), rank); }
  bool reduces() const;
  Bytes element() const { return bytes_of(course_.options.type); }
  cost::Task task() const { return {collective_, elements_, element(), world(), course_.options.root}; }

  void enter(const Contender& contender);
  void decide(BenchRow& row) const;
  schedule::Plan plan(const schedule::Execution& execution) const;
  void declare(Entrant& entrant);
  void finish(std::span<std::byte> data) const;
  std::int64_t sum(std::int64_t value) const;
  void predict(BenchRow& row) const;

  Seconds run_once(const Entrant& entrant);
  void run_native();
  void prepare_inputs();
  std::int64_t count_wrong() const;
  std::int64_t verify(const Entrant& entrant);
  Bytes sent() const { return engine_.traffic()[comm::Purpose::other]; }

  void add_times();
  std::vector<Seconds> slowest(const std::vector<double>& mine) const;
  void summarise(BenchRow& row, const std::vector<Seconds>& times) const;

  Course course_;
  CommonStart start_;
  schedule::Collective collective_;
  Elements elements_;
  std::vector<Entrant> entrants_;
  std::optional<comm::NativeCollectives> native_;
  collectives::Engine engine_;  // its operations work on the vector
};

}  // namespace annulet::measure
