#include "annulet/schedule/pipelined_tree.hpp"

#include <bit>

#include "annulet/schedule/tree.hpp"

namespace annulet::schedule {
namespace {

TreeNode node_of(PlanShape shape) {
  shape.root = 0;
  return binary_tree_node(shape);
}

}  // namespace

Plan pipelined_tree_all_reduce(const PlanShape& shape) { return tree_all_reduce(shape, node_of(shape)); }

int pipelined_tree_steps(int world) { return 2 * (static_cast<int>(std::bit_width(static_cast<unsigned>(world))) - 1); }

Elements pipelined_tree_all_reduce_sends(const PlanShape& shape) {
  return tree_all_reduce_sends(shape, node_of(shape));
}

}  // namespace annulet::schedule
