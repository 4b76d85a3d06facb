#pragma once
// Trees over the ranks, and the collectives that go along one: a reduce towards the root, a broadcast away from it.
// Vectors travel in segments, each forwarded as soon as it is there (pipelining); with one segment nothing overlaps.
// The algorithms are binomial_tree, pipelined_tree and pipelined_chain: a tree and a length of segment each.
#include <vector>

#include "annulet/schedule/plan.hpp"
#include "annulet/schedule/plan_shape.hpp"

namespace annulet::schedule {

// A rank's place in a tree.
struct TreeNode {
  int parent = -1;              // none at the root
  std::vector<int> children{};  // in the order in which a broadcast serves them; a reduce takes them backwards
};

// The root of the ranks [lo, hi), counted from the root of the tree, is lo; its first child is the root of the upper
// half, rounded up, and so on with the lower half. For a power of two the binomial tree; always ceil(log2 p) deep.
TreeNode binomial_tree_node(const PlanShape& shape);

// Position v, counted from the root, has children 2v+1 and 2v+2: floor(log2 p) deep.
TreeNode binary_tree_node(const PlanShape& shape);

// One child each: p-1 deep.
TreeNode chain_node(const PlanShape& shape);

// The steps of the node's rank, in segments of shape.segment through shape.slots received segments.
Plan tree_broadcast(const PlanShape& shape, const TreeNode& node);
Plan tree_reduce(const PlanShape& shape, const TreeNode& node);
Plan tree_all_reduce(const PlanShape& shape, const TreeNode& node);  // a reduce, then a broadcast

// Elements that the rank sends: n to each child, n to its parent, both.
Elements tree_broadcast_sends(const PlanShape& shape, const TreeNode& node);
Elements tree_reduce_sends(const PlanShape& shape, const TreeNode& node);
Elements tree_all_reduce_sends(const PlanShape& shape, const TreeNode& node);

}  // namespace annulet::schedule
