#pragma once
// A collective of ours beside MPI's own, alternating in one run, as nccl-tests measures: for sizes that double, `bytes`
// is the whole vector (all-reduce: each rank's; reduce-scatter: each rank's input; all-gather: each rank's output), and
//   algbw = bytes / p50        busbw = algbw * 2 (p-1)/p for all-reduce, algbw * (p-1)/p for the other two.
// Before every round the ranks meet in a barrier; a round's time is that of the slowest rank. A round before and one
// after those that are timed have inputs whose exact result is known in every element (small integers), checked on
// every rank.
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "annulet/comm/communicator.hpp"
#include "annulet/cost/network.hpp"
#include "annulet/measure/transport_factory.hpp"

namespace annulet::measure {

enum class CollectiveKind { all_reduce, reduce_scatter, all_gather };
enum class Algorithm { ring, mpi };  // ours; MPI's own
enum class NumberType { float32, float64, int32 };
std::string_view to_text(CollectiveKind kind);
std::string_view to_text(Algorithm algorithm);
std::string_view to_text(NumberType type);

struct BenchOptions {
  CollectiveKind collective = CollectiveKind::all_reduce;
  std::vector<Algorithm> algorithms{Algorithm::ring, Algorithm::mpi};
  NumberType type = NumberType::float32;
  Bytes smallest{8}, largest{64 << 20};
  Bytes segment{256 << 10};  // most bytes of a message of the ring
  int slots = 2;             // as schedule::RingShape
  cost::Network network;     // to predict with
  Seconds share{0.4};        // of a size: rounds are repeated as long, within bounds
  Seconds deadline{300};     // as collectives::EngineOptions
};

struct BenchRow {
  CollectiveKind collective{};
  Algorithm algorithm{};
  Bytes bytes{0};
  Elements count = 0;
  NumberType type{};
  int ranks = 1;
  int rounds = 0;
  Seconds p50{0}, p99{0};
  ByteRate algbw{}, busbw{};
  std::int64_t wrong = 0;  // elements over all ranks
  Bytes payload{0};        // what rank 0 originates
  // Of the ring: over all ranks, counted where it was sent, by the plans, and by the formula; what the simulation says.
  std::optional<Bytes> wire{}, planned{}, formula{};
  std::optional<Seconds> predicted{};

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
