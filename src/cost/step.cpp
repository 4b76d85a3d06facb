#include "annulet/cost/step.hpp"

#include <algorithm>

#include "annulet/base/error.hpp"
#include "annulet/cost/closed_form.hpp"
#include "annulet/cost/simulate.hpp"
#include "annulet/schedule/recursive_doubling.hpp"
#include "step_program.hpp"

namespace annulet::cost {
namespace {

using Kind = Instruction::Kind;

constexpr int kRounds = 20;  // of letting computing and communication delay each other; three are usual
constexpr Seconds kSettled{1e-9};

// All ranks' plans of one operation.
std::vector<schedule::Plan> plans_of(const StepInput& input, const schedule::Exchange& exchange) {
  std::vector<schedule::Plan> plans;
  for (int r = 0; r < input.world; ++r) {
    plans.push_back(schedule::exchange_plan(exchange, r, input.world, input.sync));
  }
  return plans;
}

// What the program of one rank comes to: instants from its beginning.
struct Walk {
  std::vector<Seconds> launched;          // [operation] when it may begin
  std::vector<Seconds> handed;            // [operation] when it was handed to the engine
  std::vector<Attention::Interval> busy;  // computing
  Seconds step_begins{0}, backward_begins{0}, backward_ends{0}, ends{0};
  Seconds weights{0}, room{0}, forward_waits{0};  // waited for, and in forward
};

class Predictor {
 public:
  explicit Predictor(const StepInput& input) : input_(input), program_(checked_program(input)) {
    if (!input.slowdown.empty()) slowest_ = *std::ranges::max_element(input.slowdown);
    for (const schedule::Exchange& exchange : program_.operations) {
      core_.push_back(core_time(exchange)), unpacking_.push_back(unpacking_time(exchange));
    }
    if (input.closed_form || !can_simulate()) return;
    for (const schedule::Exchange& exchange : program_.operations) plans_.push_back(plans_of(input, exchange));
  }

  bool can_simulate() const { return simulated_steps() <= input_.most_simulated; }

  // Ranks with slowdowns each walk through the program on their own; ranks that are alike walk together.
  StepPrediction run() {
    const bool apart = !input_.slowdown.empty() && !plans_.empty();
    walks_.resize(apart ? input_.slowdown.size() : 1);
    for (std::size_t lane = 0; lane < walks_.size(); ++lane) walks_[lane] = walk(lane);
    const int rounds = kRounds + 2 * static_cast<int>(program_.operations.size());
    for (int round = 0; round < rounds && let_communicate() > kSettled; ++round) {
    }
    return result();
  }

 private:
  static StepProgram checked_program(const StepInput& input) {
    ANNULET_EXPECTS(input.profile.ready.size() == input.tensors.size(), "a profile has an instant for each tensor");
    ANNULET_EXPECTS(input.world > 0, "a step is of at least one rank");
    ANNULET_EXPECTS(input.slowdown.empty() || input.slowdown.size() == static_cast<std::size_t>(input.world),
                    "every rank has a slowdown, or none");
    ANNULET_EXPECTS(input.slowdown.empty() || !shares_the_core(input), "stragglers have their core to themselves");
    return step_program(input);
  }

  static bool shares_the_core(const StepInput& input) {
    return input.driver == Driver::polling || (input.driver == Driver::thread && !input.spare_core);
  }

  CollectiveShape shape_of(const schedule::Exchange& exchange) const {
    const schedule::Execution execution = schedule::execution_of(exchange, input_.sync);
    return {exchange.collective, execution.algorithm, exchange.bytes(),
            input_.world,        exchange.element,    execution.segment};
  }

  bool is_narrow(const schedule::Exchange& exchange) const {
    return input_.sync.compression.kind == schedule::Compression::Kind::bfloat16 && exchange.element < input_.element;
  }

  bool is_sparse(const schedule::Exchange& exchange) const { return exchange.element > input_.element; }

  // What an operation takes of rank 0's core: what it sends and receives is moved, made narrow and wide again, what it
  // receives to add is added.
  Seconds core_time(const schedule::Exchange& exchange) const {
    const Bytes moved = 2 * schedule::exchange_sends(exchange, 0, input_.world, input_.sync);
    const SecondsPerByte known = input_.network.ring_link().moving;
    const SecondsPerByte moving = known.value() > 0 ? known : input_.profile.moving;
    const Link adding{Seconds(0), Seconds(0), SecondsPerByte(0), input_.profile.adding};
    const Seconds added = predicted_time(shape_of(exchange), adding).reduction;
    return moving * moved + (is_narrow(exchange) ? input_.profile.narrowing * moved + added : Seconds(0)) + added +
           unpacking_time(exchange);
  }

  // Adding up everybody's pieces of a sparse bucket after clearing it, which touches half of what adding does.
  Seconds unpacking_time(const schedule::Exchange& exchange) const {
    if (!is_sparse(exchange)) return Seconds(0);
    const Elements bucket = exchange.elements / input_.world * input_.sync.compression.one_in;
    return input_.profile.spreading * exchange.bytes() + 0.5 * (input_.profile.adding * (input_.element * bucket));
  }

  std::size_t simulated_steps() const {
    std::size_t steps = 0;
    for (const schedule::Exchange& exchange : program_.operations) steps += steps_of(exchange);
    return steps;
  }

  // Of all ranks' plans, more or less: a ring is counted without making it, which is long where ranks are many.
  std::size_t steps_of(const schedule::Exchange& exchange) const {
    const auto world = static_cast<std::size_t>(input_.world);
    const CollectiveShape shape = shape_of(exchange);
    if (shape.algorithm != schedule::Algorithm::ring) {
      return world * schedule::exchange_plan(exchange, 0, input_.world, input_.sync).steps.size();
    }
    const Elements segment = std::max<Elements>(1, shape.segment.value() / exchange.element.value());
    const auto segments = static_cast<std::size_t>(
        schedule::segments(schedule::chunk(exchange.elements, input_.world, input_.world - 1), segment));
    return 5 * world * (world - 1) * segments;
  }

  Walk walk(std::size_t lane) const {
    const double slowdown = input_.slowdown.empty() ? 1 : walks_.size() > 1 ? input_.slowdown[lane] : slowest_;
    Walk walk;
    walk.launched.resize(program_.operations.size()), walk.handed = walk.launched;
    std::vector<std::size_t> held_back;  // with `blocking`, until somebody waits
    bool looked = false;                 // at messages since it last computed
    Seconds now{0};
    for (std::size_t i = 0; i <= program_.instructions.size(); ++i) {
      if (i == program_.step_begins) walk.step_begins = now;
      if (i == program_.backward_begins) walk.backward_begins = now;
      if (i == program_.backward_ends) walk.backward_ends = now;
      if (i == program_.instructions.size()) break;
      const Instruction& instruction = program_.instructions[i];
      switch (instruction.kind) {
        case Kind::compute: {
          const Seconds end = computed(now, slowdown * instruction.work, lane);
          if (looked || walk.busy.empty()) walk.busy.push_back({now, now});
          walk.busy.back().end = now = end;
          looked = false;
          break;
        }
        case Kind::launch:
          walk.handed[instruction.operation] = walk.launched[instruction.operation] = now;
          if (input_.driver == Driver::blocking) held_back.push_back(instruction.operation);
          break;
        case Kind::wait: {
          for (const std::size_t operation : held_back) walk.launched[operation] = now;
          held_back.clear();
          // Waiting for what has ended is no look at messages; for what ends just now it is.
          const Seconds end = std::max(now, end_of(instruction.operation, lane));
          looked = looked || ends_.empty() || end_of(instruction.operation, lane) >= now - kSettled;
          if (i < program_.backward_begins) walk.weights += end - now, walk.forward_waits += end - now;
          if (i >= program_.backward_begins && i < program_.backward_ends) {
            (gathers(instruction.operation) ? walk.weights : walk.room) += end - now;
          }
          now = end;
          break;
        }
      }
    }
    walk.ends = now;
    return walk;
  }

  bool gathers(std::size_t operation) const {
    return std::ranges::find(program_.of_bucket, operation) == program_.of_bucket.end();
  }

  // Before the first round nothing is known of operations, and nobody waits for them.
  Seconds end_of(std::size_t operation, std::size_t lane) const {
    return ends_.empty() ? Seconds(0) : ends_[operation][lane];
  }

  // When the core has computed for `work` from `begin` on: the least t with t = begin + work + what was taken
  // meanwhile.
  Seconds computed(Seconds begin, Seconds work, std::size_t lane) const {
    if (!shares_the_core(input_) || ends_.empty()) return begin + work;
    const Seconds before = taken(begin, lane);
    Seconds at = begin + work;
    for (int i = 0; i < 200; ++i) {
      const Seconds next = begin + work + taken(at, lane) - before;
      if (next - at <= kSettled) return next;
      at = next;
    }
    return at;
  }

  // What communication has taken of the core until `at`: each operation takes its part evenly from its start to its
  // end.
  Seconds taken(Seconds at, std::size_t lane) const {
    const std::vector<Seconds>& launched = walks_[lane].launched;
    Seconds sum{0};
    for (std::size_t c = 0; c < ends_.size(); ++c) {
      const Seconds length = ends_[c][lane] - launched[c];
      const double part = length.count() > 0 ? std::clamp((at - launched[c]) / length, 0.0, 1.0) : 1.0;
      if (at > launched[c]) sum += part * core_[c];
    }
    return sum;
  }

  // Lets operations run as they were launched, then ranks compute and wait as operations ended. By how much the launch
  // moved that moved most.
  Seconds let_communicate() {
    ends_ = operation_ends();
    std::vector<Walk> walks;
    Seconds moved{0};
    for (std::size_t lane = 0; lane < walks_.size(); ++lane) {
      walks.push_back(walk(lane));
      for (std::size_t c = 0; c < program_.operations.size(); ++c) {
        const Seconds by = walks[lane].launched[c] - walks_[lane].launched[c];
        moved = std::max({moved, by, -by});
      }
    }
    walks_ = std::move(walks);
    return moved;
  }

  // [operation][lane]
  std::vector<std::vector<Seconds>> operation_ends() const {
    if (input_.world == 1) return ends_alone();
    return plans_.empty() ? ends_by_closed_form() : ends_by_simulation();
  }

  std::vector<std::vector<Seconds>> ends_alone() const {
    std::vector<std::vector<Seconds>> ends;
    for (std::size_t c = 0; c < program_.operations.size(); ++c) {
      ends.push_back({walks_.front().launched[c] + unpacking_[c]});
    }
    return ends;
  }

  // One operation after the other.
  std::vector<std::vector<Seconds>> ends_by_closed_form() const {
    std::vector<std::vector<Seconds>> ends;
    for (std::size_t c = 0; c < program_.operations.size(); ++c) {
      const Seconds launched = walks_.front().launched[c];
      const Seconds begin = ends.empty() ? launched : std::max(launched, ends.back().front());
      ends.push_back({begin + total_time(shape_of(program_.operations[c]), input_.network) + unpacking_[c]});
    }
    return ends;
  }

  std::vector<std::vector<Seconds>> ends_by_simulation() const {
    std::vector<LaunchedCollective> collectives;
    for (std::size_t c = 0; c < plans_.size(); ++c) {
      const schedule::Exchange& exchange = program_.operations[c];
      LaunchedCollective collective{{}, exchange.element, {}};
      if (is_narrow(exchange)) collective.handling = input_.profile.narrowing;
      for (std::size_t r = 0; r < plans_[c].size(); ++r) {
        collective.plans.push_back(&plans_[c][r]);
        collective.launched.push_back(walks_[walks_.size() > 1 ? r : 0].launched[c]);
      }
      collectives.push_back(std::move(collective));
    }
    auto ends = simulate(collectives, input_.network, {.attention = attention()});
    for (std::size_t c = 0; c < ends.size(); ++c) {
      for (Seconds& end : ends[c]) end += unpacking_[c];
    }
    return ends;
  }

  // With a core of its own whoever steps looks all the time, and so does a rank that has nothing to compute.
  Attention attention() const {
    if (input_.driver == Driver::blocking) return {Attention::kNever, walks_.front().busy};
    if (!shares_the_core(input_)) return {};
    return {input_.profile.pulse, walks_.front().busy};
  }

  Seconds control_time() const {
    if (input_.world > 1024) {
      return schedule::recursive_doubling_steps(input_.world) *
             (input_.network.ring_link().alpha + input_.network.ring_link().beta * input_.control);
    }
    std::vector<schedule::Plan> plans;
    for (int r = 0; r < input_.world; ++r) {
      plans.push_back(schedule::recursive_doubling_all_reduce(r, input_.world, 1));
    }
    LaunchedCollective record{{}, input_.control, std::vector<Seconds>(plans.size())};
    for (const schedule::Plan& plan : plans) record.plans.push_back(&plan);
    return simulate(std::span(&record, 1), input_.network)[0][0];
  }

  // Of the slowest rank; but sums are there when all have them.
  StepPrediction result() const {
    const auto slowest = std::ranges::max_element(walks_, {}, &Walk::backward_ends);
    const Seconds origin = slowest->step_begins, summed = std::ranges::max(walks_, {}, &Walk::ends).ends;
    StepPrediction prediction;
    prediction.backward_begins = slowest->backward_begins - origin;
    prediction.forward = prediction.backward_begins - slowest->forward_waits;
    prediction.backward_ends = slowest->backward_ends - origin;
    for (const std::size_t c : program_.of_bucket) {
      prediction.buckets.push_back({schedule::payload(program_.operations[c], input_.world),
                                    slowest->handed[c] - origin, slowest->launched[c] - origin,
                                    std::ranges::max(ends_[c]) - origin});
    }
    prediction.exposed = summed - slowest->backward_ends;
    prediction.weights = slowest->weights, prediction.room = slowest->room;
    prediction.control = control_time();
    prediction.optimizer = slowest_ * (input_.profile.norm / input_.world + program_.update) + origin;
    prediction.step = summed - origin + prediction.control + prediction.optimizer;
    return prediction;
  }

  const StepInput& input_;
  StepProgram program_;
  std::vector<std::vector<schedule::Plan>> plans_;  // [operation][rank]; empty unless simulated
  std::vector<Seconds> core_;                       // [operation] what it takes of the core
  std::vector<Seconds> unpacking_;                  // [operation] after it has ended
  std::vector<Walk> walks_;                         // [lane]
  std::vector<std::vector<Seconds>> ends_;          // [operation][lane]
  double slowest_ = 1;
};

}  // namespace

bool can_simulate(const StepInput& input) { return Predictor(input).can_simulate(); }

StepPrediction predict_step(const StepInput& input) { return Predictor(input).run(); }

}  // namespace annulet::cost
