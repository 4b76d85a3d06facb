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
#include "annulet/measure/congestion.hpp"
#include "annulet/report/bench_table.hpp"
#include "annulet/train/agree.hpp"
#include "annulet/train/config.hpp"
#include "commands.hpp"
#include "config_options.hpp"
#include "on_all_ranks.hpp"

namespace annulet::cli {
namespace {

using measure::Contender;
using measure::NumberType;
using measure::Reduction;
using schedule::Collective;

struct BenchArguments {
  train::Config config;  // segment, slots, emulate, deadline
  std::vector<std::string> collectives{"all_reduce"}, algorithms;
  std::string type = "float", reduction = "sum", json, csv, machine;
  int root = 0;
  Bytes smallest{8}, largest{64 << 20};
  int factor = 2;
  Seconds per_size{0.4};
  int expected_ranks = 0;
};

void add_options(CLI::App& app, BenchArguments& arguments) {
  app.add_option("--collective", arguments.collectives,
                 "all_reduce, reduce_scatter, all_gather, broadcast, reduce, several of them, or all")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--algorithm", arguments.algorithms,
                 "ours by name, several of them, or all; auto (ours, by predicted cost), but for sizes as "
                 "'recursive_doubling:0-8KiB;ring:1MiB-max' says; mpi (MPI's own)")
      ->delimiter(',')
      ->default_str("a collective's first and mpi");
  add_unit_option(app, "--min-bytes", arguments.smallest, parse_bytes, "8", "smallest vector");
  add_unit_option(app, "--max-bytes", arguments.largest, parse_bytes, "64MiB", "largest vector");
  app.add_option("--factor", arguments.factor, "from one size to the next")
      ->check(CLI::Range(2, 1024))
      ->capture_default_str();
  add_unit_option(app, "--per-size", arguments.per_size, parse_seconds, "400ms",
                  "time for the rounds of a size, all algorithms together; 7 to 2000 rounds");
  app.add_option("--type", arguments.type, "float, double, int32, or bfloat16: floats that travel as such")
      ->capture_default_str();
  app.add_option("--op", arguments.reduction, "sum, average or max")->capture_default_str();
  app.add_option("--root", arguments.root, "of broadcasts and reduces")->capture_default_str();
  add_unit_option(app, "--segment", arguments.config.segment, parse_bytes, "0B",
                  "most bytes in one message, where the algorithm cuts segments; 0: by the link");
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

constexpr Contender kMpi{Contender::Kind::mpi};

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
    choose_networks();
    if (speaks()) announce();
    const auto rows = measure::run_bench(world_, transport_, options_, [&](const measure::BenchRow& row) {
      if (speaks()) print(row);
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
    return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {}", fmt::join(arguments_.collectives, ","),
                       arguments_.type, arguments_.reduction, arguments_.root, fmt::join(arguments_.algorithms, ","),
                       arguments_.smallest.value(), arguments_.largest.value(), arguments_.factor,
                       arguments_.per_size.count(), options_.segment.value(), options_.slots, machine_.has_value(),
                       arguments_.config.emulate);
  }

  void check_sizes() const {
    const std::int64_t element = measure::bytes_of(options_.type).value();
    if (arguments_.largest < arguments_.smallest || arguments_.smallest.value() == 0) {
      throw InputError({fmt::format("--min-bytes {} to --max-bytes {} has no size", arguments_.smallest.value(),
                                    arguments_.largest.value()),
                        "sizes grow from the one up to the other", ""});
    }
    if (arguments_.smallest.value() % element != 0) {
      throw InputError(
          {fmt::format("--min-bytes {} is no whole number of {}s", arguments_.smallest.value(), arguments_.type),
           fmt::format("each has {} bytes", element), ""});
    }
    const bool native = std::ranges::find(options_.contenders, kMpi) != options_.contenders.end();
    if (native && arguments_.largest.value() / element > std::numeric_limits<int>::max()) {
      throw InputError({fmt::format("--max-bytes {} is too much for MPI's own collectives", arguments_.largest.value()),
                        "they count elements in an int", "Lower it, or leave mpi out of --algorithm"});
    }
  }

  void check_values() const {
    if (options_.type == NumberType::int32 && options_.reduction == Reduction::average) {
      throw InputError({"--op average of int32 has no exact result", "a mean of integers is none", "Take floats"});
    }
    if (options_.type == NumberType::bfloat16 && world_.size() > measure::kMostBfloat16Ranks) {
      throw InputError({fmt::format("bfloat16 on {} ranks cannot be checked", world_.size()),
                        fmt::format("sums are exact for up to {}", measure::kMostBfloat16Ranks), "Take fewer ranks"});
    }
    if (arguments_.root < 0 || arguments_.root >= world_.size()) {
      throw InputError({fmt::format("--root {} is no rank", arguments_.root),
                        fmt::format("they are numbered 0 to {}", world_.size() - 1), ""});
    }
  }

  void prepare() {
    train::validate(arguments_.config);
    options_.type =
        choose("--type", arguments_.type,
               std::array{NumberType::float32, NumberType::float64, NumberType::int32, NumberType::bfloat16});
    options_.reduction =
        choose("--op", arguments_.reduction, std::array{Reduction::sum, Reduction::average, Reduction::maximum});
    options_.root = arguments_.root;
    check_values();
    if (!arguments_.config.emulate.empty()) emulated_ = comm::parse_emulated_link(arguments_.config.emulate);
    choose_collectives();
    choose_contenders();
    check_sizes();
    const parallel::SyncOptions sync = train::sync_options(arguments_.config);
    options_.segment = sync.segment, options_.slots = sync.slots;
    options_.smallest = arguments_.smallest, options_.largest = arguments_.largest;
    options_.factor = arguments_.factor;
    options_.per_size = arguments_.per_size;
    options_.deadline = arguments_.config.deadline;
    transport_ = measure::transport_over(world_, emulated_);
    if (!arguments_.machine.empty()) machine_ = cost::read_machine_file(arguments_.machine);
    if (!speaks()) return;
    if (!arguments_.json.empty()) json_.emplace(arguments_.json);
    if (!arguments_.csv.empty()) csv_.emplace(arguments_.csv);
  }

  void choose_collectives() {
    options_.collectives.clear();
    for (const std::string& name : arguments_.collectives) {
      const auto all = schedule::collectives();
      const auto wanted =
          name == "all" ? std::vector(all.begin(), all.end()) : std::vector{schedule::parse_collective(name)};
      for (const Collective collective : wanted) add_once(options_.collectives, collective);
    }
  }

  void choose_contenders() {
    options_.contenders.clear();
    for (const Collective collective : options_.collectives) {
      if (arguments_.algorithms.empty()) add({Contender::Kind::algorithm, algorithms_of(collective).front()});
      for (const std::string& name : arguments_.algorithms) {
        if (name == "all") add_all(collective);
      }
    }
    for (const std::string& name : arguments_.algorithms) {
      if (name != "all") add(contender(name));
    }
    if (arguments_.algorithms.empty()) add(kMpi);
    if (options_.contenders.empty()) {
      throw InputError({"there is nothing to run", left_out_, "Add an algorithm of ours to --algorithm"});
    }
    for (const Contender& one : options_.contenders) require_a_collective(one);
  }

  void add_all(Collective collective) {
    for (const schedule::Algorithm algorithm : algorithms_of(collective)) add({Contender::Kind::algorithm, algorithm});
    add(kMpi);
  }

  Contender contender(const std::string& name) {
    if (name == "mpi") return kMpi;
    if (name == "auto") return {Contender::Kind::automatic};
    if (name.find_first_of(":;@") == std::string::npos) {
      return {Contender::Kind::algorithm, schedule::parse_algorithm(name)};
    }
    if (options_.collectives.size() != 1) {
      throw InputError({fmt::format("--algorithm '{}' is for one collective", name), "each has algorithms of its own",
                        "Give one --collective"});
    }
    options_.ranges = schedule::parse_execution_ranges(options_.collectives.front(), name);
    return {Contender::Kind::automatic};
  }

  // What makes no sense for MPI's own is left out, and said.
  void add(const Contender& contender) {
    if (contender == kMpi) left_out_ = why_not_mpi();
    if (contender.is_ours() || left_out_.empty()) add_once(options_.contenders, contender);
  }

  std::string why_not_mpi() const {
    const std::string what = "MPI's own collectives are left out: ";
    if (emulated_) return what + "they would run on the real link, not on the emulated one";
    if (world_.size() == 1) return what + "one rank sends nothing";
    if (options_.type == NumberType::bfloat16) return what + "MPI has no bfloat16";
    if (options_.reduction == Reduction::average) return what + "MPI has no average";
    return "";
  }

  void require_a_collective(const Contender& contender) const {
    const auto has = [&](Collective collective) {
      return contender.kind != Contender::Kind::algorithm || has_algorithm(collective, contender.algorithm);
    };
    if (std::ranges::any_of(options_.collectives, has)) return;
    const Collective first = options_.collectives.front();
    std::vector<std::string_view> names;
    for (const schedule::Algorithm algorithm : algorithms_of(first)) names.push_back(to_text(algorithm));
    throw InputError({fmt::format("none of the collectives has an algorithm {}", to_text(contender.algorithm)), "",
                      fmt::format("{} has: {}", to_text(first), fmt::join(names, ", "))});
  }

  template <class Value>
  static void add_once(std::vector<Value>& values, const Value& value) {
    if (std::ranges::find(values, value) == values.end()) values.push_back(value);
  }

  // To predict with the machine file or what is measured now; to choose by the file, the emulated link or assumptions.
  void choose_networks() {
    const std::vector<int> node = emulated_ ? std::vector<int>{} : world_.nodes();
    options_.known = cost::assumed_network(node), known_by_ = "assumed shared memory";
    if (options_.known.nodes() > 1) known_by_ += " inside nodes, 10 Gb/s between them";
    if (!emulated_) warning_ = measure::congestion_warning(world_);
    if (emulated_) {
      options_.known = cost::Link{emulated_->latency, {}, cost::SecondsPerByte(1 / emulated_->bandwidth.value())};
      known_by_ = "the emulated link";
    }
    if (machine_) {
      options_.network = options_.known = machine_->network(node), known_by_ = "the machine file";
      return;
    }
    measure::CalibrationOptions options;
    options.segment = std::max<Elements>(1, options_.segment.value() / static_cast<Elements>(sizeof(float)));
    options.slots = options_.slots, options.deadline = options_.deadline;
    options_.network = measure::quick_calibration(transport_, options).link;
  }

  void announce() const {
    const std::vector<int>& node = options_.network.node;
    fmt::print("{}, {}; segments of {}, {} slots\n", environment_.placement(), environment_.library(),
               to_text(options_.segment), options_.slots);
    if (world_.size() > 1) {
      fmt::print("{}{} ({})\n", node.empty() ? "link " : "", cost::to_text(options_.network),
                 options_.network.inside.source);
    } else {
      fmt::print("one rank: nothing is sent\n");
    }
    if (!left_out_.empty()) fmt::print("{}\n", left_out_);
    if (!warning_.empty()) fmt::print("{}\n", warning_);
    const Contender automatic{Contender::Kind::automatic};
    if (std::ranges::find(options_.contenders, automatic) == options_.contenders.end()) return;
    fmt::print("auto chooses by {}", known_by_);
    if (!options_.ranges.empty()) fmt::print(", but {}", schedule::to_text(options_.ranges));
    fmt::print("\n");
  }

  void print(const measure::BenchRow& row) {
    if (shown_ != row.collective) fmt::print("{}", report::bench_header(row.collective));
    shown_ = row.collective;
    fmt::print("{}", report::bench_line(row));
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
  std::string left_out_, known_by_, warning_;
  std::optional<Collective> shown_;
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
