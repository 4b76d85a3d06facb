#include "machine.hpp"

#include <algorithm>

#include "annulet/comm/emulated.hpp"
#include "annulet/measure/calibrate.hpp"
#include "annulet/measure/clock_offset.hpp"
#include "annulet/measure/congestion.hpp"
#include "annulet/measure/moving.hpp"
#include "annulet/measure/peaks.hpp"
#include "annulet/nn/product_rate.hpp"

namespace annulet::train {
namespace {

ClockReading read_clock(const comm::Communicator& communicator, const Config& config) {
  const Seconds ahead = measure::clock_offset(measure::transport_over(communicator), 16, config.deadline).ahead;
  return {Clock::now(), ahead};
}

void calibrate(Machine& machine, const Config& config, Bytes largest, const measure::TransportFactory& transport) {
  const parallel::SyncOptions sync = sync_options(config);
  measure::CalibrationOptions options;
  options.segment = std::max<Elements>(1, sync.segment.value() / static_cast<Elements>(sizeof(float)));
  options.slots = sync.slots;
  options.largest = std::max(options.smallest, largest);
  options.deadline = config.deadline;
  const measure::Calibration calibration = measure::quick_calibration(transport, options);
  machine.network = calibration.link;
  if (!calibration.points.empty()) machine.calibration_residual = calibration.median_residual;
}

}  // namespace

measure::TransportFactory transport_factory(const comm::Communicator& communicator, const Config& config) {
  if (config.emulate.empty()) return measure::transport_over(communicator);
  return measure::transport_over(communicator, comm::parse_emulated_link(config.emulate));
}

ClockDrift clock_drift(const comm::Communicator& communicator, ClockReading before, const Config& config) {
  return {before, read_clock(communicator, config)};
}

cost::SecondsPerByte moving_pace(const comm::Communicator& communicator, const Config& config) {
  const parallel::SyncOptions sync = sync_options(config);
  measure::MovingOptions options;
  options.segment = std::max<Elements>(1, sync.segment.value() / static_cast<Elements>(sizeof(float)));
  options.slots = sync.slots, options.deadline = config.deadline;
  const double mine = measure::moving_pace(measure::transport_over(communicator), options).value();
  return cost::SecondsPerByte(communicator.maximum(mine));
}

Machine look_at_machine(const comm::Environment& environment, const Config& config, Bytes largest,
                        const std::optional<cost::Machine>& known) {
  const comm::Communicator& world = environment.world();
  Machine machine;
  machine.cores = measure::find_cores(world);
  const bool threads_allowed = environment.thread_level() >= comm::ThreadLevel::serialized;
  machine.driver = collectives::choose_driver(
      config.driver, {machine.cores.distinct_on_node, machine.cores.ranks_on_node, world.size()}, threads_allowed);
  const int threads = machine.driver.driver == collectives::Driver::thread ? 2 : 1;
  if (const std::string warning = measure::binding_warning(machine.cores, threads); !warning.empty()) {
    machine.warnings.push_back(warning);
  }
  if (config.emulate.empty()) {
    if (const std::string warning = measure::congestion_warning(world); !warning.empty()) {
      machine.warnings.push_back(warning);
    }
  }
  const double cores = machine.cores.in_use_total;
  machine.peak = FlopRate(cores * world.maximum(measure::fma_peak().value()));
  machine.gemm = FlopRate(cores * world.maximum(nn::product_rate().value()));
  machine.clock = read_clock(world, config);
  if (known) {
    // An emulated link is a port of each rank, wherever it is.
    machine.network = known->network(config.emulate.empty() ? world.nodes() : std::vector<int>{});
  } else {
    calibrate(machine, config, largest, transport_factory(world, config));
  }
  return machine;
}

}  // namespace annulet::train
