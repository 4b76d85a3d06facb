// annulet bench: our collectives beside MPI's own, measured, verified and predicted.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "annulet/base/atomic_file.hpp"
#include "annulet/base/error.hpp"
#include "annulet/base/random.hpp"
#include "annulet/comm/environment.hpp"
#include "annulet/cost/machine.hpp"
#include "annulet/measure/bench.hpp"
#include "annulet/measure/calibrate.hpp"
#include "annulet/report/bench_table.hpp"
#include "annulet/train/agree.hpp"
#include "annulet/train/config.hpp"
#include "commands.hpp"
#include "config_options.hpp"
#include "on_all_ranks.hpp"

namespace annulet::cli {
namespace {

using measure::Algorithm;
using measure::CollectiveKind;
using measure::NumberType;

struct BenchArguments {
  train::Config config;  // segment, slots, emulate, deadline
  std::string collective = "all_reduce", type = "float", json, csv, machine;
  std::vector<std::string> algorithms{"ring", "mpi"};
  Bytes smallest{8}, largest{64 << 20};
  int expected_ranks = 0;
};

void add_options(CLI::App& app, BenchArguments& arguments) {
  app.add_option("--collective", arguments.collective, "all_reduce, reduce_scatter or all_gather")
      ->capture_default_str();
  app.add_option("--algorithm", arguments.algorithms, "ring (ours), mpi (MPI's own), or both")
      ->delimiter(',')
      ->capture_default_str();
  add_unit_option(app, "--min-bytes", arguments.smallest, parse_bytes, "8", "smallest vector; sizes double from it");
  add_unit_option(app, "--max-bytes", arguments.largest, parse_bytes, "64MiB", "largest vector");
  app.add_option("--type", arguments.type, "float, double or int32")->capture_default_str();
  add_unit_option(app, "--segment", arguments.config.segment, parse_bytes, "0B",
                  "most bytes in one message of the ring; 0: by the link");
  app.add_option("--slots", arguments.config.slots, "received segments that may wait to be added; 0: by the link");
  app.add_option("--emulate", arguments.config.emulate,
                 "a slower link than the one there is: alpha=1ms,bandwidth=125MB/s");
  app.add_option("--machine", arguments.machine, "a machine file to predict with (default: a quick calibration)");
  app.add_option("--json", arguments.json, "file for the rows as JSON");
  app.add_option("--csv", arguments.csv, "file for the rows as comma-separated values");
  add_unit_option(app, "--deadline", arguments.config.deadline, parse_seconds, "300s",
                  "longest time to wait for a rank that does not move");
  app.add_option("--expect-ranks", arguments.expected_ranks, "refuse to run on another number of ranks")
      ->check(at_least(1));
}

template <class Value, std::size_t n>
Value choose(const char* option, const std::string& wish, const std::array<Value, n>& values) {
  std::string names;
  for (const Value value : values) {
    if (measure::to_text(value) == wish) return value;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", measure::to_text(value));
  }
  throw InputError({fmt::format("{} = '{}' is unknown", option, wish), "", "Choose one of: " + names});
}

class Bench {
 public:
  Bench(const BenchArguments& arguments, const comm::Environment& environment)
      : arguments_(arguments), environment_(environment), world_(environment.world()) {}

  int run() {
    world_.set_deadline(arguments_.config.deadline);
    train::agree_on(world_, [&] { prepare(); });
    train::require_equal(world_, stable_hash(fingerprint()),
                         {"the options are not the same on all ranks", "every rank must run the same collectives",
                          "Give all ranks the same files and arguments"});
    options_.network = network();
    if (speaks()) announce();
    const auto rows = measure::run_bench(world_, transport_, options_, [&](const measure::BenchRow& row) {
      if (speaks()) fmt::print("{}", report::bench_line(row)), std::fflush(stdout);
    });
    train::agree_on(world_, [&] {
      if (speaks()) write(rows);
      measure::require_right(rows);
    });
    return 0;
  }

 private:
  bool speaks() const { return world_.rank() == 0; }

  // What decides which collectives are run.
  std::string fingerprint() const {
    return fmt::format("{} {} {} {} {} {} {} {}", arguments_.collective, arguments_.type,
                       fmt::join(arguments_.algorithms, ","), arguments_.smallest.value(), arguments_.largest.value(),
                       options_.segment.value(), options_.slots, machine_.has_value()) +
           arguments_.config.emulate;
  }

  void check_sizes() const {
    const std::int64_t element = options_.type == NumberType::float64 ? 8 : 4;
    if (arguments_.smallest.value() % element != 0) {
      throw InputError(
          {fmt::format("--min-bytes {} is no whole number of {}s", arguments_.smallest.value(), arguments_.type),
           fmt::format("each has {} bytes", element), ""});
    }
    const bool native = std::ranges::find(options_.algorithms, Algorithm::mpi) != options_.algorithms.end();
    if (native && arguments_.largest.value() / element > std::numeric_limits<int>::max()) {
      throw InputError({fmt::format("--max-bytes {} is too much for MPI's own collectives", arguments_.largest.value()),
                        "they count elements in an int", "Lower it, or leave mpi out of --algorithm"});
    }
  }

  void prepare() {
    train::validate(arguments_.config);
    options_.collective =
        choose("--collective", arguments_.collective,
               std::array{CollectiveKind::all_reduce, CollectiveKind::reduce_scatter, CollectiveKind::all_gather});
    options_.type =
        choose("--type", arguments_.type, std::array{NumberType::float32, NumberType::float64, NumberType::int32});
    if (arguments_.largest < arguments_.smallest || arguments_.smallest.value() == 0) {
      throw InputError({fmt::format("--min-bytes {} to --max-bytes {} has no size", arguments_.smallest.value(),
                                    arguments_.largest.value()),
                        "sizes double from the one up to the other", ""});
    }
    if (!arguments_.config.emulate.empty()) emulated_ = comm::parse_emulated_link(arguments_.config.emulate);
    choose_algorithms();
    check_sizes();
    const parallel::SyncOptions sync = train::sync_options(arguments_.config);
    options_.segment = sync.segment, options_.slots = sync.slots;
    options_.smallest = arguments_.smallest, options_.largest = arguments_.largest;
    options_.deadline = arguments_.config.deadline;
    transport_ = measure::transport_over(world_, emulated_);
    if (!arguments_.machine.empty()) machine_ = cost::read_machine_file(arguments_.machine);
    if (!speaks()) return;
    if (!arguments_.json.empty()) json_.emplace(arguments_.json);
    if (!arguments_.csv.empty()) csv_.emplace(arguments_.csv);
  }

  // MPI's own collectives cannot be run over an emulated link, and mean nothing for one rank.
  void choose_algorithms() {
    options_.algorithms.clear();
    for (const std::string& name : arguments_.algorithms) {
      const Algorithm algorithm = choose("--algorithm", name, std::array{Algorithm::ring, Algorithm::mpi});
      if (algorithm == Algorithm::mpi && emulated_) {
        left_out_ = "MPI's own collectives are left out: they would run on the real link, not on the emulated one";
      } else if (algorithm == Algorithm::mpi && world_.size() == 1) {
        left_out_ = "MPI's own collectives are left out: one rank sends nothing";
      } else if (std::ranges::find(options_.algorithms, algorithm) == options_.algorithms.end()) {
        options_.algorithms.push_back(algorithm);
      }
    }
    if (options_.algorithms.empty()) {
      throw InputError({"there is nothing to run", left_out_, "Add ring to --algorithm"});
    }
  }

  cost::Network network() {
    if (machine_) return machine_->network(emulated_ ? std::vector<int>{} : world_.nodes());
    measure::CalibrationOptions options;
    options.segment = std::max<Elements>(1, options_.segment.value() / static_cast<Elements>(sizeof(float)));
    options.slots = options_.slots, options.deadline = options_.deadline;
    return measure::quick_calibration(transport_, options).link;
  }

  void announce() const {
    const std::vector<int>& node = options_.network.node;
    fmt::print("{}, {}; ring in segments of {}, {} slots\n", environment_.placement(), environment_.library(),
               to_text(options_.segment), options_.slots);
    if (world_.size() > 1) {
      fmt::print("{}{} ({})\n", node.empty() ? "link " : "", cost::to_text(options_.network),
                 options_.network.inside.source);
    } else {
      fmt::print("one rank: nothing is sent\n");
    }
    if (!left_out_.empty()) fmt::print("{}\n", left_out_);
    fmt::print("{}", report::bench_header(options_.collective));
    std::fflush(stdout);
  }

  void write(const std::vector<measure::BenchRow>& rows) {
    fmt::print("{}", report::bench_summary(rows));
    if (json_) json_->write(report::bench_json(rows)), json_->commit();
    if (csv_) csv_->write(report::bench_csv(rows)), csv_->commit();
  }

  BenchArguments arguments_;
  const comm::Environment& environment_;
  comm::Communicator world_;
  measure::BenchOptions options_;
  measure::TransportFactory transport_;
  std::optional<comm::EmulatedLink> emulated_;
  std::optional<cost::Machine> machine_;
  std::optional<AtomicFile> json_, csv_;
  std::string left_out_;
};

}  // namespace

int bench(const Arguments& arguments) {
  BenchArguments parsed;
  CLI::App app("Measures our collectives beside MPI's own and beside what the model predicts.", "annulet bench");
  add_options(app, parsed);
  std::string help;
  if (parse(app, arguments, help) == Parsed::help) {
    print_once(help);
    return 0;
  }
  const auto expected = parsed.expected_ranks > 0 ? std::optional(parsed.expected_ranks) : std::nullopt;
  const comm::Environment environment(expected);
  return on_all_ranks("bench", environment, [&] { return Bench(parsed, environment).run(); });
}

}  // namespace annulet::cli
