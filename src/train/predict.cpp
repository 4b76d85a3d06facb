#include "predict.hpp"

#include "annulet/parallel/control.hpp"

namespace annulet::train {
namespace {

cost::Driver driver_of(collectives::Driver driver) {
  switch (driver) {
    case collectives::Driver::blocking:
      return cost::Driver::blocking;
    case collectives::Driver::polling:
      return cost::Driver::polling;
    case collectives::Driver::thread:
      break;
  }
  return cost::Driver::thread;
}

}  // namespace

cost::StepInput step_input(const Config& config, const Machine& machine, const Profile& profile, Bytes element,
                           int world) {
  cost::StepInput input;
  input.profile = profile.step;
  input.tensors = profile.workload.sizes;
  input.element = element;
  input.sync = sync_options(config);
  input.network = machine.network;
  input.world = world;
  input.driver = driver_of(machine.driver.driver);
  input.spare_core = machine.cores.distinct_on_node >= 2 * machine.cores.ranks_on_node;
  input.control = Bytes(sizeof(parallel::ControlRecord));
  return input;
}

Elements batch_per_rank(Elements batch, int world) {
  return (batch + world - 1) / world;
}

}  // namespace annulet::train
