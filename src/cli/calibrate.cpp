// annulet calibrate: measures the links between the ranks of the MPI world and writes them to a machine file.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "annulet/base/atomic_file.hpp"
#include "annulet/base/error.hpp"
#include "annulet/comm/eager_limit.hpp"
#include "annulet/comm/environment.hpp"
#include "annulet/cost/machine.hpp"
#include "annulet/measure/calibrate_network.hpp"
#include "annulet/measure/clock_offset.hpp"
#include "annulet/measure/congestion.hpp"
#include "annulet/measure/moving.hpp"
#include "annulet/nn/product_rate.hpp"
#include "annulet/report/calibration_table.hpp"
#include "annulet/report/console.hpp"
#include "annulet/train/agree.hpp"
#include "annulet/train/config.hpp"
#include "commands.hpp"
#include "config_options.hpp"
#include "on_all_ranks.hpp"

namespace annulet::cli {
namespace {

constexpr int kClockExchanges = 8;
constexpr double kShared = 0.65;  // of one way's bandwidth: below, both ways share something

struct CalibrateOptions {
  train::Config config;  // segment, slots, emulate, deadline
  std::string out;
  int expected_ranks = 0;
};

void add_options(CLI::App& app, CalibrateOptions& options) {
  app.add_option("--out", options.out, "machine file to write; without it the links are only printed");
  app.add_option("--emulate", options.config.emulate, "calibrate an emulated link: alpha=1ms,bandwidth=125MB/s");
  add_unit_option(app, "--deadline", options.config.deadline, parse_seconds, "300s",
                  "longest time to wait for a rank that does not move");
  app.add_option("--expect-ranks", options.expected_ranks, "refuse to run on another number of ranks")
      ->check(at_least(1));
}

// Progress on rank 0: one line that is redrawn on a terminal, nothing elsewhere.
class Progress {
 public:
  explicit Progress(bool speaks) : speaks_(speaks && report::detect_liveliness() == report::Liveliness::redraw) {}
  ~Progress() {
    if (speaks_) fmt::print(stderr, "\r\x1b[K");
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void operator()(const std::string& what) const {
    if (speaks_) fmt::print(stderr, "\r\x1b[Kmeasuring {}", what);
  }

 private:
  bool speaks_;
};

class Calibrate {
 public:
  Calibrate(const CalibrateOptions& options, const comm::Environment& environment)
      : options_(options), environment_(environment), world_(environment.world()) {}

  int run() {
    world_.set_deadline(options_.config.deadline);
    train::agree_on(world_, [&] { prepare(); });
    announce();
    const measure::NetworkCalibration calibration = measured();
    const FlopRate compute(-world_.maximum(-nn::product_rate().value()));  // the slowest rank's
    train::agree_on(world_, [&] {
      if (world_.rank() == 0) print(calibration, compute);
      refuse_negative(calibration);
      if (world_.rank() == 0 && file_) write(calibration, compute);
    });
    return 0;
  }

 private:
  void prepare() {
    if (world_.size() == 1) {
      throw InputError({"one rank has no link to calibrate", "nothing is sent",
                        "Start two or more ranks, e.g. mpirun -n 2 annulet calibrate"});
    }
    train::validate(options_.config);
    if (!options_.config.emulate.empty()) emulated_ = comm::parse_emulated_link(options_.config.emulate);
    if (world_.rank() == 0 && !options_.out.empty()) file_.emplace(options_.out);
    // An emulated link delays all messages alike, wherever the ranks are.
    if (!emulated_) eager_ = comm::find_eager_limits();
  }

  void announce() {
    node_ = world_.nodes();
    const std::string warning = emulated_ ? "" : measure::congestion_warning(world_);
    if (world_.rank() != 0) return;
    fmt::print("{}, {}\n", environment_.placement(), environment_.library());
    if (emulated_) {
      fmt::print("emulated link: alpha {}, bandwidth {}, on top of the real one\n", to_text(emulated_->latency),
                 to_text(emulated_->bandwidth));
      return;
    }
    const auto say = [](const char* where, const comm::EagerLimit& limit) {
      const std::string pieces =
          limit.reach() > limit.bytes ? fmt::format(", in pieces of up to {}", to_text(limit.bytes)) : "";
      fmt::print("eager {}: up to {}{} over {} ({})\n", where, to_text(limit.reach()), pieces, limit.transport,
                 limit.origin);
    };
    say("inside a node", eager_->inside);
    if (node_.back() > 0) say("between nodes", eager_->between);
    if (!warning.empty()) fmt::print("{}\n", warning);
  }

  measure::NetworkCalibration measured() {
    const parallel::SyncOptions sync = train::sync_options(options_.config);
    const Progress progress(world_.rank() == 0);
    measure::NetworkCalibrationOptions options;
    if (eager_) {
      options.node = node_;
      options.eager_inside = eager_->inside.reach(), options.eager_between = eager_->between.reach();
    }
    options.segment = sync.segment.value() / static_cast<Elements>(sizeof(float)), options.slots = sync.slots;
    options.deadline = options_.config.deadline;
    options.ahead = [&] {
      return measure::clock_offset(measure::transport_over(world_), kClockExchanges, options.deadline).ahead;
    };
    options.progress = std::cref(progress);
    auto calibration = measure::calibrate_network(measure::transport_over(world_, emulated_), options);
    calibration.inside.moving = calibration.between.moving = moving(options);
    return calibration;
  }

  // The slowest rank's, on the real link: an emulated one takes no more of a core.
  cost::SecondsPerByte moving(const measure::NetworkCalibrationOptions& network) const {
    measure::MovingOptions options;
    options.segment = network.segment, options.slots = network.slots, options.deadline = network.deadline;
    const double mine = measure::moving_pace(measure::transport_over(world_), options).value();
    return cost::SecondsPerByte(world_.maximum(mine));
  }

  void print(const measure::NetworkCalibration& calibration, FlopRate compute) const {
    const cost::Network network(calibration.inside, calibration.between, eager_ ? node_ : std::vector<int>{});
    fmt::print("{}", report::calibration_table(calibration, network));
    fmt::print("compute: large products reach {} on one core", to_text(compute));
    const double moving = calibration.inside.moving.value();
    if (moving > 0) fmt::print("; moving bytes takes a core's time at {}", to_text(ByteRate(1 / moving)));
    fmt::print("\n");
    for (const cost::Link* link : {&calibration.inside, &calibration.between}) {
      if (link->alpha > Seconds(0) && link->beta.value() > 0) continue;
      fmt::print("a latency or a time per byte {} came out as 0: it is lost in the noise of these measurements\n",
                 link == &calibration.inside ? "inside a node" : "between nodes");
    }
    warn_of_shared_connection(calibration);
  }

  static void refuse_negative(const measure::NetworkCalibration& calibration) {
    if (calibration.negative.empty()) return;
    throw RunError({fmt::format("the best fit has a negative {}", calibration.negative),
                    "no link has, so these measurements are not those of a link",
                    "Repeat on quiet machines; nothing was written"});
  }

  void write(const measure::NetworkCalibration& calibration, FlopRate compute) {
    const cost::Machine machine{calibration.inside, calibration.between, compute, source()};
    file_->write(
        cost::to_toml(machine, {"Written by annulet calibrate; read with --machine FILE.",
                                fmt::format("residuals: median {:.1f} %, worst {:.1f} %",
                                            100 * calibration.median_residual, 100 * calibration.worst_residual)}));
    file_->commit();
    fmt::print("machine file: {}\n", options_.out);
  }

  std::string source() const {
    const std::string ranks = fmt::format("{} ranks on {} node(s)", world_.size(), 1 + std::ranges::max(node_));
    return emulated_ ? fmt::format("calibrated: {}, emulated link {}", ranks, options_.config.emulate)
                     : fmt::format("calibrated: {}, {}", ranks, environment_.library());
  }

  void warn_of_shared_connection(const measure::NetworkCalibration& calibration) const {
    if (!eager_) return;
    for (const cost::Scope scope : {cost::Scope::inside, cost::Scope::between}) {
      const bool inside = scope == cost::Scope::inside;
      const auto share = measure::both_ways_share(calibration.points, scope);
      if (!share || *share > kShared || !(inside ? eager_->inside : eager_->between).is_tcp()) continue;
      fmt::print(
          "both ways at once reach {:.0f} % of one way's bandwidth {} (one TCP connection carries both directions). "
          "Set OMPI_MCA_btl_tcp_links=2.\n",
          100 * *share, inside ? "inside a node" : "between nodes");
    }
  }

  CalibrateOptions options_;
  const comm::Environment& environment_;
  comm::Communicator world_;
  std::optional<comm::EmulatedLink> emulated_;
  std::optional<comm::EagerLimits> eager_;  // absent: emulated
  std::optional<AtomicFile> file_;
  std::vector<int> node_;
};

}  // namespace

int calibrate(const Arguments& arguments) {
  CalibrateOptions options;
  CLI::App app("Measures alpha, g, beta and gamma of the links between the ranks of the MPI world.",
               "annulet calibrate");
  add_options(app, options);
  std::string help;
  if (parse(app, arguments, help) == Parsed::help) {
    print_once(help);
    return 0;
  }
  const auto expected = options.expected_ranks > 0 ? std::optional(options.expected_ranks) : std::nullopt;
  const comm::Environment environment(expected);
  return on_all_ranks("calibrate", environment, [&] { return Calibrate(options, environment).run(); });
}

}  // namespace annulet::cli
