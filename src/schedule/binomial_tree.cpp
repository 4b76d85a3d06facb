#include "annulet/schedule/binomial_tree.hpp"

#include <algorithm>
#include <bit>

#include "annulet/schedule/tree.hpp"

namespace annulet::schedule {
namespace {

// One segment, and a second slot, so that a child may send while the sum of another is being added.
PlanShape whole(PlanShape shape) {
  shape.segment = std::max<Elements>(shape.elements, 1);
  shape.slots = 2;
  return shape;
}

PlanShape from_rank_0(PlanShape shape) {
  shape.root = 0;
  return shape;
}

}  // namespace

Plan binomial_tree_broadcast(const PlanShape& shape) { return tree_broadcast(whole(shape), binomial_tree_node(shape)); }

Plan binomial_tree_reduce(const PlanShape& shape) { return tree_reduce(whole(shape), binomial_tree_node(shape)); }

Plan binomial_tree_all_reduce(const PlanShape& shape) {
  return tree_all_reduce(whole(shape), binomial_tree_node(from_rank_0(shape)));
}

int binomial_tree_steps(int world) { return static_cast<int>(std::bit_width(static_cast<unsigned>(world - 1))); }

Elements binomial_tree_broadcast_sends(const PlanShape& shape) {
  return tree_broadcast_sends(shape, binomial_tree_node(shape));
}

Elements binomial_tree_reduce_sends(const PlanShape& shape) { return shape.rank == shape.root ? 0 : shape.elements; }

Elements binomial_tree_all_reduce_sends(const PlanShape& shape) {
  return tree_all_reduce_sends(shape, binomial_tree_node(from_rank_0(shape)));
}

}  // namespace annulet::schedule
