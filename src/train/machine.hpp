#pragma once
// What a run finds out about the machine before its first step, the same on every rank.
#include <optional>

#include "annulet/collectives/driver.hpp"
#include "annulet/comm/environment.hpp"
#include "annulet/cost/machine.hpp"
#include "annulet/measure/cores.hpp"
#include "annulet/measure/transport_factory.hpp"
#include "annulet/train/config.hpp"
#include "annulet/train/step_samples.hpp"

namespace annulet::train {

struct Machine {
  measure::Cores cores;
  collectives::DriverChoice driver;
  cost::Network network;                       // to predict with
  std::optional<double> calibration_residual;  // median
  ClockReading clock;                          // this rank's against rank 0's, before the first step
  FlopRate peak, gemm;                         // over the cores in use
  std::vector<std::string> warnings;
};

// How training's messages travel: MPI over Annulet's own duplicate of the world, with the emulated link on top if there
// is one.
measure::TransportFactory transport_factory(const comm::Communicator& communicator, const Config& config);

// Collective: reads this rank's clock against rank 0's again, after the run; in between clocks drift apart steadily.
ClockDrift clock_drift(const comm::Communicator& communicator, ClockReading before, const Config& config);

// Collective: what moving bytes takes of a core, as the slowest rank found it, on the link beneath an emulated one.
cost::SecondsPerByte moving_pace(const comm::Communicator& communicator, const Config& config);

// Collective; `largest` is the most bytes that are reduced at once. `known`: a machine that need not be measured.
Machine look_at_machine(const comm::Environment& environment, const Config& config, Bytes largest,
                        const std::optional<cost::Machine>& known);

}  // namespace annulet::train
