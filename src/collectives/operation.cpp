#include "annulet/collectives/operation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "annulet/base/error.hpp"

namespace annulet::collectives {

using schedule::Action;
using schedule::Step;
using schedule::StepId;

namespace {

// Messages of one kind that an operation has in flight at most: enough to fill a long link with segments, few enough
// for MPI to search quickly.
constexpr int kWindow = 32;

std::size_t index(StepId step) { return static_cast<std::size_t>(step); }

void require_input(std::span<const std::byte> input, std::span<const std::byte> data) {
  ANNULET_EXPECTS(input.size() == data.size(), "what goes in is as long as what comes out");
  const std::less_equal<const std::byte*> at_most;
  const bool apart =
      at_most(input.data() + input.size(), data.data()) || at_most(data.data() + data.size(), input.data());
  ANNULET_EXPECTS(apart || input.data() == data.data(), "input and data are apart or the same");
}

}  // namespace

Operation::Operation(OperationSpec spec) : spec_(std::move(spec)) {
  ANNULET_EXPECTS(spec_.plan && spec_.element.combine != nullptr, "an operation needs a plan and an element type");
  const schedule::Plan& plan = *spec_.plan;
  ANNULET_EXPECTS(spec_.data.size() == static_cast<std::size_t>(plan.elements) * spec_.element.size,
                  "the data of an operation has the elements of its plan");
  if (schedule::reads_input(plan)) require_input(spec_.input, spec_.data);
  const std::size_t steps = plan.steps.size();
  prerequisites_.resize(steps), finished_.resize(steps), first_dependent_.assign(steps + 1, 0);
  for (std::size_t s = 0; s < steps; ++s) {
    prerequisites_[s] = plan.steps[s].edge_count;
    for (const StepId before : plan.after(plan.steps[s])) ++first_dependent_[index(before) + 1];
    if (plan.steps[s].action == Action::send) sends_.order.push_back(static_cast<StepId>(s));
    if (plan.steps[s].action == Action::receive) receives_.order.push_back(static_cast<StepId>(s));
    if (spec_.element.wire != nullptr) {
      stage_.expect(static_cast<std::size_t>(plan.steps[s].count()) * spec_.element.wire->size);
    }
  }
  for (std::size_t s = 0; s < steps; ++s) first_dependent_[s + 1] += first_dependent_[s];
  dependents_.resize(plan.edges.size());
  auto next = first_dependent_;
  for (std::size_t s = 0; s < steps; ++s) {
    for (const StepId before : plan.after(plan.steps[s])) {
      dependents_[static_cast<std::size_t>(next[index(before)]++)] = static_cast<StepId>(s);
    }
  }
  waiting_.reserve(steps), computable_.reserve(steps);
}

std::size_t Operation::scratch_bytes() const {
  return static_cast<std::size_t>(spec_.plan->scratch) * spec_.element.size;
}

void Operation::start(int tag, std::uint64_t token_base, std::span<std::byte> scratch) {
  ANNULET_EXPECTS(scratch.size() >= scratch_bytes(), "an operation is given the scratch it asked for");
  tag_ = tag, token_base_ = token_base, scratch_ = scratch;
  waiting_ = prerequisites_;
  std::fill(finished_.begin(), finished_.end(), false);
  computable_.clear();
  next_computable_ = 0;
  sends_.next = receives_.next = 0;
  sends_.in_flight = receives_.in_flight = 0;
  remaining_ = waiting_.size();
  for (std::size_t s = 0; s < waiting_.size(); ++s) {
    const Action action = spec_.plan->steps[s].action;
    const bool computes = action == Action::combine || action == Action::copy;
    if (computes && waiting_[s] == 0) computable_.push_back(static_cast<StepId>(s));
  }
}

void Operation::finish_step(StepId step) {
  --(spec_.plan->steps[index(step)].action == Action::send ? sends_ : receives_).in_flight;
  if (spec_.element.wire != nullptr) take_in(step);
  release(step);
}

bool Operation::advance(comm::Transport& transport) {
  bool moved = false;
  while (post_next(receives_, transport) || post_next(sends_, transport) || compute_next()) moved = true;
  return moved;
}

bool Operation::post_next(Queue& queue, comm::Transport& transport) {
  if (queue.next == queue.order.size() || queue.in_flight == kWindow) return false;
  const StepId step = queue.order[queue.next];
  if (waiting_[index(step)] > 0) return false;
  ++queue.next, ++queue.in_flight;
  post(step, transport);
  return true;
}

void Operation::post(StepId id, comm::Transport& transport) {
  const Step& step = spec_.plan->steps[index(id)];
  const comm::Envelope envelope{step.peer, tag_, spec_.purpose, token_base_ + static_cast<std::uint64_t>(id)};
  const std::span<std::byte> carried = message(id);
  if (step.action == Action::send) {
    transport.post_send(envelope, carried);
  } else {
    transport.post_receive(envelope, carried);
  }
}

std::span<std::byte> Operation::message(StepId id) {
  const Step& step = spec_.plan->steps[index(id)];
  const std::span<std::byte> elements = bytes(step.action == Action::send ? step.from : step.to);
  if (spec_.element.wire == nullptr) return elements;
  const std::span<std::byte> wire = stage_.take(id, static_cast<std::size_t>(step.count()) * spec_.element.wire->size);
  if (step.action == Action::send) spec_.element.wire->encode(wire.data(), elements.data(), step.count());
  return wire;
}

void Operation::take_in(StepId id) {
  const Step& step = spec_.plan->steps[index(id)];
  if (step.action == Action::receive) {
    spec_.element.wire->decode(bytes(step.to).data(), stage_.of(id).data(), step.count());
  }
  stage_.give_back(id);
}

std::span<std::byte> Operation::Stage::take(StepId step, std::size_t bytes) {
  if (taken_.size() <= index(step)) taken_.resize(index(step) + 1);
  AlignedVector<std::byte>& memory = taken_[index(step)];
  if (!free_.empty()) memory = std::move(free_.back()), free_.pop_back();
  memory.reserve(largest_);
  memory.resize(bytes);
  return memory;
}

void Operation::Stage::give_back(StepId step) {
  free_.push_back(std::move(taken_[index(step)]));
  taken_[index(step)].clear();
}

bool Operation::compute_next() {
  if (next_computable_ == computable_.size()) return false;
  const StepId id = computable_[next_computable_++];
  const Step& step = spec_.plan->steps[index(id)];
  if (step.action == Action::combine) {
    spec_.element.combine(bytes(step.to).data(), source(step.from).data(), step.count());
  } else {
    std::memmove(bytes(step.to).data(), source(step.from).data(), bytes(step.to).size());
  }
  release(id);
  return true;
}

void Operation::release(StepId step) {
  finished_[index(step)] = true;
  --remaining_;
  for (auto d = first_dependent_[index(step)]; d < first_dependent_[index(step) + 1]; ++d) {
    const StepId dependent = dependents_[static_cast<std::size_t>(d)];
    const Action action = spec_.plan->steps[index(dependent)].action;
    const bool computes = action == Action::combine || action == Action::copy;
    if (--waiting_[index(dependent)] == 0 && computes) computable_.push_back(dependent);
  }
}

template <class Byte>
std::span<Byte> Operation::part(std::span<Byte> memory, schedule::Interval where) const {
  return memory.subspan(static_cast<std::size_t>(where.first) * spec_.element.size,
                        static_cast<std::size_t>(where.count) * spec_.element.size);
}

std::span<std::byte> Operation::bytes(schedule::Region region) const {
  return part(region.place == schedule::Place::data ? spec_.data : scratch_, region.interval);
}

std::span<const std::byte> Operation::source(schedule::Region region) const {
  return region.place == schedule::Place::input ? part(spec_.input, region.interval) : bytes(region);
}

std::string Operation::first_unfinished(const Queue& queue, const char* text) const {
  for (std::size_t i = 0; i < queue.next; ++i) {
    if (finished_[index(queue.order[i])]) continue;
    const Step& step = spec_.plan->steps[index(queue.order[i])];
    return fmt::format(fmt::runtime(text), step.count(), step.peer);
  }
  return {};
}

std::string Operation::state() const {
  const std::size_t steps = finished_.size();
  std::string text = fmt::format("{} of {} steps done", steps - remaining_, steps);
  text += first_unfinished(receives_, ", waiting for {} elements from rank {}");
  text += first_unfinished(sends_, ", waiting for {} elements to be taken by rank {}");
  return text;
}

}  // namespace annulet::collectives
