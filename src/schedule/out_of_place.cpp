#include "annulet/schedule/out_of_place.hpp"

#include <algorithm>

namespace annulet::schedule {
namespace {

bool works_on(const Step& step, Region region) { return step.from.overlaps(region) || step.to.overlaps(region); }

// The parts of `contribution` in the plan's chunks: those first that the plan uses first.
std::vector<Interval> pieces_in_order_of_use(const Plan& plan, Interval contribution) {
  std::vector<Interval> pieces;
  for (int c = 0; c < plan.world; ++c) {
    const Interval whole = chunk(plan.elements, plan.world, c);
    const Elements first = std::max(whole.first, contribution.first);
    const Elements end = std::min(whole.end(), contribution.end());
    if (first < end) pieces.push_back({first, end - first});
  }
  const auto first_use = [&](Interval piece) {
    return std::ranges::find_if(plan.steps,
                                [&](const Step& s) {
                                  return works_on(s, {Place::data, piece});
                                }) -
           plan.steps.begin();
  };
  std::ranges::stable_sort(pieces, {}, first_use);
  return pieces;
}

}  // namespace

Interval contribution(Collective collective, const PlanShape& shape) {
  if (collective == Collective::all_gather) return chunk(shape.elements, shape.world, shape.rank);
  if (collective == Collective::broadcast && shape.rank != shape.root) return {};
  return {0, shape.elements};
}

Plan out_of_place(const Plan& plan, Interval contribution) {
  ANNULET_EXPECTS(!reads_input(plan), "a plan is taken out of place once");
  Plan result{plan.rank, plan.world, plan.elements, plan.scratch, {}, {}};
  for (const Interval piece : pieces_in_order_of_use(plan, contribution)) {
    result.steps.push_back({Action::copy, -1, {Place::input, piece}, {Place::data, piece}, 0, 0});
  }
  const auto copies = static_cast<StepId>(result.steps.size());
  for (Step step : plan.steps) {
    const std::span<const StepId> before = plan.after(step);
    step.first_edge = static_cast<std::int32_t>(result.edges.size());
    for (const StepId id : before) result.edges.push_back(id + copies);
    for (StepId c = 0; c < copies; ++c) {
      if (works_on(step, result.steps[static_cast<std::size_t>(c)].to)) result.edges.push_back(c);
    }
    step.edge_count = static_cast<std::int32_t>(result.edges.size()) - step.first_edge;
    result.steps.push_back(step);
  }
  return result;
}

}  // namespace annulet::schedule
