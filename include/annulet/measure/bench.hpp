#pragma once
// Collectives of ours beside MPI's own, alternating in one run, as nccl-tests measures: for sizes that grow, `bytes`
// is the whole vector as it travels (all-reduce, reduce: each rank's; reduce-scatter: each rank's input; all-gather:
// each rank's output; broadcast: the root's), and
//   algbw = bytes / p50        busbw = algbw * 2 (p-1)/p for all-reduce, algbw * (p-1)/p for reduce-scatter and
//                              all-gather, algbw for broadcast and reduce
// Before every round the ranks meet in a barrier; a round's time is that of the slowest rank. A round before and one
// after those that are timed have inputs whose exact result is known in every element (small integers), checked on
// every rank.
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "annulet/comm/communicator.hpp"
#include "annulet/cost/choice.hpp"
#include "annulet/measure/transport_factory.hpp"

namespace annulet::measure {

enum class NumberType : std::uint8_t { float32, float64, int32, bfloat16 };  // bfloat16: floats that travel as such
enum class Reduction : std::uint8_t { sum, average, maximum };
std::string_view to_text(NumberType type);
std::string_view to_text(Reduction reduction);

constexpr int kMostBfloat16Ranks = 22;  // whose sum is known: 1 + 2 + ... + 22 has eight bits

// Of a number under way.
Bytes bytes_of(NumberType type);

// What takes part: an algorithm of ours, `auto` (ours, by predicted cost) or MPI's own.
struct Contender {
  enum class Kind : std::uint8_t { algorithm, automatic, mpi } kind = Kind::algorithm;
  schedule::Algorithm algorithm = schedule::Algorithm::ring;  // of the first kind

  bool is_ours() const { return kind != Kind::mpi; }
  friend bool operator==(const Contender&, const Contender&) = default;
};
std::string_view to_text(const Contender& contender);

// Collectives leave out the algorithms that they do not have.
struct BenchOptions {
  std::vector<schedule::Collective> collectives{schedule::Collective::all_reduce};
  std::vector<Contender> contenders{{}, {Contender::Kind::mpi}};
  NumberType type = NumberType::float32;
  Reduction reduction = Reduction::sum;
  int root = 0;  // of broadcasts and reduces
  Bytes smallest{8}, largest{64 << 20};
  int factor = 2;                                  // from one size to the next
  Bytes segment{256 << 10};                        // most bytes of a message; `auto` chooses its own
  int slots = 2;                                   // as schedule::PlanShape
  cost::Network network;                           // to predict with
  cost::Network known;                             // for `auto` to choose by
  std::vector<schedule::ExecutionRange> ranges{};  // what `auto` shall not choose
  Seconds per_size{0.4};                           // rounds of all contenders are repeated as long, within bounds
  Seconds deadline{300};                           // as collectives::EngineOptions
};

struct BenchRow {
  schedule::Collective collective{};
  Contender contender;
  Bytes bytes{0};
  Elements count = 0;
  NumberType type{};
  int ranks = 1;
  int rounds = 0;
  Seconds p50{0}, p99{0};
  ByteRate algbw{}, busbw{};
  std::int64_t wrong = 0;  // elements over all ranks
  Bytes payload{0};        // what rank 0 originates
  // Of ours: how it ran; over all ranks, bytes counted where they were sent, by the plans, and by the formula; what the
  // simulation says.
  std::optional<schedule::Execution> execution{};
  std::optional<Bytes> wire{}, planned{}, formula{};
  std::optional<Seconds> predicted{};
  std::string reason{};  // why `auto` ran it so

  bool bytes_agree() const { return wire == planned && planned == formula; }
  std::optional<double> residual() const;  // measured / predicted - 1
};

// Throws RunError for the first row with a wrong element, or with bytes that are not those planned.
void require_right(std::span<const BenchRow> rows);

// Collective over `communicator`, over which the transports send. `on_row` is told of each row on every rank; rows are
// the same everywhere.
std::vector<BenchRow> run_bench(const comm::Communicator& communicator, const TransportFactory& make_transport,
                                const BenchOptions& options, const std::function<void(const BenchRow&)>& on_row = {});

}  // namespace annulet::measure
