#include "annulet/cost/choice.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "annulet/cost/closed_form.hpp"
#include "annulet/cost/simulate.hpp"

namespace annulet::cost {
namespace {

using schedule::Algorithm;
using schedule::Execution;
using schedule::Plan;

constexpr Bytes kSegments[] = {Bytes(4 << 20), Bytes(512 << 10), Bytes(64 << 10)};
constexpr Bytes kCoreCache{512 << 10};          // holds what a core copied until it adds
constexpr Bytes kSharedCache{16 << 20};         // holds the vectors of a node's ranks; two cores of AMD Zen 5
constexpr std::size_t kMostSimulated = 20'000;  // for each of some ten candidates
constexpr int kMostDirect = 8;
constexpr double kEqual = 1e-9;

Plan plan_of(const Task& task, const Execution& execution, int rank) {
  auto shape = schedule::plan_shape(execution, rank, task.world, task.elements, task.element);
  shape.root = task.root;
  return schedule::make_plan(task.collective, execution.algorithm, shape);
}

Seconds simulated(const Task& task, const Execution& execution, const Network& network) {
  std::vector<Plan> plans;
  for (int rank = 0; rank < task.world; ++rank) plans.push_back(plan_of(task, execution, rank));
  LaunchedCollective collective{{}, task.element, std::vector<Seconds>(plans.size())};
  for (const Plan& plan : plans) collective.plans.push_back(&plan);
  return std::ranges::max(simulate(std::span(&collective, 1), network).front());
}

bool copies_by_core(const Network& network) { return network.nodes() == 1 && network.inside.core_is_port; }

bool is_considered(Algorithm algorithm, const Task& task, const Network& network) {
  const bool few = task.world <= kMostDirect;
  if (algorithm == Algorithm::direct) return few;
  const bool reduces_chunks =
      task.collective == schedule::Collective::all_reduce || task.collective == schedule::Collective::reduce_scatter;
  return !(few && reduces_chunks && copies_by_core(network) && task.bytes() > kCoreCache);
}

// Where cores copy: a vector in the cache that they share is there when it is added, and cutting it only costs
// messages.
bool leaves_caches(const Task& task, const Network& network) {
  return copies_by_core(network) && task.world * task.bytes() > kSharedCache;
}

// Longer segments first: of two that take as long the one with fewer messages. One that holds the vector is enough.
std::vector<Bytes> segments_for(const Task& task, Algorithm algorithm, const Network& network) {
  if (!schedule::has_segments(algorithm)) return {kSegments[0]};
  std::vector<Bytes> segments;
  for (const Bytes segment : kSegments) {
    if (segment > kCoreCache && leaves_caches(task, network)) continue;
    if (!segments.empty() && segment >= task.bytes()) segments.pop_back();
    segments.push_back(segment);
  }
  return segments;
}

bool is_cheaper(const PricedExecution& a, const PricedExecution& b) { return a.time < (1 - kEqual) * b.time; }

// For the segments under way during one latency, and two that are being added.
int slots_for(Bytes segment, const Link& link) {
  constexpr int kBeingAdded = 2, kMost = 32;
  if (link.beta.value() <= 0) return kBeingAdded;
  const double under_way = link.alpha.count() / link.beta.value() / segment.as_double();
  return static_cast<int>(std::min<double>(kMost, kBeingAdded + std::round(under_way)));
}

PricedExecution best_segment(const Task& task, Algorithm algorithm, const Network& network) {
  std::optional<PricedExecution> best;
  for (const Bytes segment : segments_for(task, algorithm, network)) {
    const Execution execution{algorithm, segment, slots_for(segment, network.ring_link())};
    const PricedExecution priced{execution, task_time(task, execution, network, kMostSimulated)};
    if (!best || is_cheaper(priced, *best)) best = priced;
  }
  return *best;
}

}  // namespace

Seconds task_time(const Task& task, const Execution& execution, const Network& network, std::size_t most_simulated) {
  const std::size_t steps = plan_of(task, execution, task.root).steps.size();
  if (steps * static_cast<std::size_t>(task.world) <= most_simulated) return simulated(task, execution, network);
  const CollectiveShape shape{task.collective, execution.algorithm, task.bytes(),
                              task.world,      task.element,        execution.segment};
  return total_time(shape, network);
}

std::vector<PricedExecution> priced_executions(const Task& task, const Network& network) {
  std::vector<PricedExecution> priced;
  for (const Algorithm algorithm : schedule::algorithms_of(task.collective)) {
    if (!is_considered(algorithm, task, network)) continue;
    const PricedExecution best = best_segment(task, algorithm, network);
    const auto dearer = std::ranges::find_if(priced, [&](const PricedExecution& p) { return is_cheaper(best, p); });
    priced.insert(dearer, best);
  }
  return priced;
}

PricedExecution cheapest_execution(const Task& task, const Network& network,
                                   const std::vector<schedule::ExecutionRange>& ranges) {
  const auto* range = schedule::range_of(ranges, task.bytes());
  if (range == nullptr) return priced_executions(task, network).front();
  if (!range->segment) return best_segment(task, range->algorithm, network);
  const Execution execution{range->algorithm, *range->segment, slots_for(*range->segment, network.ring_link())};
  return {execution, task_time(task, execution, network)};
}

std::vector<schedule::ExecutionRange> bucket_executions(std::span<const Elements> tensors, Bytes element, int world,
                                                        const schedule::SyncOptions& sync, const Network& network,
                                                        const std::vector<schedule::ExecutionRange>& preferred) {
  std::set<Elements> sizes;
  for (const auto& bucket : schedule::gradient_buckets(tensors, element, sync)) sizes.insert(bucket.elements.count);
  const Bytes under_way = schedule::travelling_bytes(element, sync.compression);
  std::vector<schedule::ExecutionRange> ranges;
  for (const Elements size : sizes) {
    const Task task{schedule::Collective::all_reduce, size, under_way, world};
    const auto [algorithm, segment, slots] = cheapest_execution(task, network, preferred).execution;
    const bool cuts = schedule::has_segments(algorithm);
    schedule::ExecutionRange range{algorithm, cuts ? std::optional(segment) : std::nullopt, task.bytes(), task.bytes()};
    const bool as_before =
        !ranges.empty() && ranges.back().algorithm == algorithm && ranges.back().segment == range.segment;
    if (as_before) range.first = ranges.back().first, ranges.pop_back();
    ranges.push_back(range);
  }
  return ranges;
}

Link assumed_link() {
  return {Seconds(20e-6), Seconds(0), SecondsPerByte(1 / 1.25e9), SecondsPerByte(1 / 10e9),
          "assumed: 10 Gb/s Ethernet"};
}

Network assumed_network(std::vector<int> node) {
  Link inside{Seconds(1e-6), Seconds(3e-6), SecondsPerByte(1 / 10e9), SecondsPerByte(1 / 5e9),
              "assumed: shared memory"};
  inside.eager = {Bytes(8 << 10), Seconds(1e-6), Seconds(2e-6), SecondsPerByte(1 / 6.6e9)};
  inside.core_is_port = true;
  return {inside, assumed_link(), std::move(node)};
}

}  // namespace annulet::cost
