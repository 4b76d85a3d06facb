#include "annulet/schedule/plan.hpp"

#include <algorithm>

namespace annulet::schedule {
namespace {

std::span<const StepId> span_of(std::initializer_list<StepId> ids) { return {ids.begin(), ids.size()}; }

}  // namespace

Elements sent_elements(const Plan& plan) {
  Elements total = 0;
  for (const Step& step : plan.steps) {
    if (step.action == Action::send) total += step.count();
  }
  return total;
}

bool reads_input(const Plan& plan) {
  return std::ranges::any_of(plan.steps, [](const Step& step) { return step.from.place == Place::input; });
}

PlanBuilder::PlanBuilder(int rank, int world, Elements elements) {
  ANNULET_EXPECTS(world > 0 && rank >= 0 && rank < world && elements >= 0, "a plan is for one rank of a world");
  plan_.rank = rank, plan_.world = world, plan_.elements = elements;
}

StepId PlanBuilder::send(int peer, Region from, std::initializer_list<StepId> after) {
  return add({Action::send, peer, from, {}, 0, 0}, span_of(after));
}

StepId PlanBuilder::send(int peer, Region from, std::span<const StepId> after) {
  return add({Action::send, peer, from, {}, 0, 0}, after);
}

StepId PlanBuilder::receive(int peer, Region to, std::initializer_list<StepId> after) {
  return add({Action::receive, peer, {}, to, 0, 0}, span_of(after));
}

StepId PlanBuilder::combine(Region from, Region to, std::initializer_list<StepId> after) {
  return add({Action::combine, -1, from, to, 0, 0}, span_of(after));
}

StepId PlanBuilder::copy(Region from, Region to, std::initializer_list<StepId> after) {
  return add({Action::copy, -1, from, to, 0, 0}, span_of(after));
}

StepId PlanBuilder::add(Step step, std::span<const StepId> after) {
  if (step.count() == 0) return kNoStep;
  step.first_edge = static_cast<std::int32_t>(plan_.edges.size());
  for (const StepId id : after) {
    if (id != kNoStep) plan_.edges.push_back(id);
  }
  step.edge_count = static_cast<std::int32_t>(plan_.edges.size()) - step.first_edge;
  for (const Region& region : {step.from, step.to}) {
    if (region.place == Place::scratch) plan_.scratch = std::max(plan_.scratch, region.interval.end());
  }
  plan_.steps.push_back(step);
  return static_cast<StepId>(plan_.steps.size()) - 1;
}

Plan PlanBuilder::finish() && { return std::move(plan_); }

}  // namespace annulet::schedule
