#include "predict.hpp"

#include <fmt/format.h>

#include "annulet/comm/emulated.hpp"
#include "annulet/cost/choice.hpp"

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

struct Basis {
  cost::Network network;
  FlopRate compute;
  std::string text;
};

Basis basis_of(const comm::Communicator& communicator, const BucketCapInput& input) {
  const std::vector<int> nodes = communicator.nodes();
  Basis basis{cost::assumed_network(nodes), cost::kAssumedCompute, "assumed shared memory"};
  if (basis.network.nodes() > 1) basis.text = "assumed links of 10 Gb/s between nodes";
  if (input.file) {
    basis.network = input.machine.network;
    if (input.file->compute.value() > 0) basis.compute = input.file->compute;
    basis.text = "the machine file";
  } else if (!input.config.emulate.empty()) {
    const comm::EmulatedLink link = comm::parse_emulated_link(input.config.emulate);
    basis.network = cost::Link{link.latency, Seconds(0), cost::SecondsPerByte(1 / link.bandwidth.value())};
    basis.text = "the emulated link";
  }
  return basis;
}

std::vector<double> packed(const cost::BucketCapChoice& choice) {
  std::vector<double> values{choice.cap.as_double()};
  for (const cost::CapPrediction& point : choice.curve) {
    values.insert(values.end(), {point.cap.as_double(), static_cast<double>(point.buckets), point.step.count()});
  }
  return values;
}

cost::BucketCapChoice unpacked(std::span<const double> values) {
  cost::BucketCapChoice choice{Bytes(static_cast<std::int64_t>(values[0])), {}, {}};
  for (std::size_t i = 1; i < values.size(); i += 3) {
    choice.curve.push_back(
        {Bytes(static_cast<std::int64_t>(values[i])), static_cast<std::size_t>(values[i + 1]), Seconds(values[i + 2])});
  }
  return choice;
}

// Processors may differ in the last bit of a double, and then in their choice.
cost::BucketCapChoice from_rank_0(const comm::Communicator& communicator, const cost::BucketCapChoice& mine) {
  std::vector<double> values = packed(mine);
  const double length = static_cast<double>(values.size());
  values.resize(static_cast<std::size_t>(communicator.all_gather(std::span(&length, 1)).front()));
  communicator.broadcast(std::as_writable_bytes(std::span(values)), 0);
  return unpacked(values);
}

}  // namespace

cost::BucketCapChoice choose_bucket_cap(const comm::Communicator& communicator, const BucketCapInput& input) {
  const Basis basis = basis_of(communicator, input);
  Profile profile;
  profile.workload.sizes = input.tensors;
  profile.workload.layers = input.layers, profile.workload.tied_layer = input.tied_layer;
  profile.step = input.profile ? input.profile->step
                               : cost::estimated_profile(input.tensors, input.element, input.flops, basis.compute);
  cost::StepInput step = step_input(input.config, input.machine, profile, input.element, communicator.size());
  step.network = basis.network;
  const auto mine = cost::cheapest_bucket_cap(std::move(step), preferred_executions(input.config));
  cost::BucketCapChoice choice = from_rank_0(communicator, mine);
  choice.basis =
      basis.text + (input.profile ? ", computing from the profile"
                                  : fmt::format(", computing estimated at {} a core", to_text(basis.compute)));
  return choice;
}

AlgorithmChoice choose_algorithms(const comm::Communicator& communicator, const BucketCapInput& input) {
  const Basis basis = basis_of(communicator, input);
  const auto preferred = preferred_executions(input.config).value_or(std::vector<schedule::ExecutionRange>{});
  const auto mine = cost::bucket_executions(input.tensors, input.element, communicator.size(),
                                            sync_options(input.config), basis.network, preferred);
  return {communicator.broadcast(schedule::to_text(mine), 0), basis.text};
}

namespace {

// Ranks that share a core have a part of it. Passes of a model are recorded while so many ranks compute; what a byte
// takes is the quickest of short turns, in which a rank has the core to itself.
void share_the_cores(cost::StepInput& input, const Machine& machine) {
  const double part = std::max(1.0, double(machine.cores.ranks_on_node) / machine.cores.distinct_on_node);
  cost::StepProfile& profile = input.profile;
  for (cost::SecondsPerByte* pace : {&profile.adding, &profile.narrowing, &profile.choosing, &profile.spreading}) {
    *pace = cost::SecondsPerByte(part * pace->value());
  }
}

}  // namespace

cost::StepInput step_input(const Config& config, const Machine& machine, const Profile& profile, Bytes element,
                           int world) {
  cost::StepInput input = profiled_step(config, profile, element);
  share_the_cores(input, machine);
  input.network = machine.network;
  input.world = world;
  input.driver = driver_of(machine.driver.driver);
  input.spare_core = machine.cores.distinct_on_node >= 2 * machine.cores.ranks_on_node;
  return input;
}

Elements batch_per_rank(Elements batch, int world) { return (batch + world - 1) / world; }

}  // namespace annulet::train
