#include "annulet/schedule/tree.hpp"

#include <gtest/gtest.h>

#include <bit>

#include "annulet/schedule/binomial_tree.hpp"
#include "annulet/schedule/pipelined_chain.hpp"
#include "annulet/schedule/pipelined_tree.hpp"
#include "schedule/plans.hpp"

namespace annulet::schedule {
namespace {

using NodeOf = TreeNode (*)(const PlanShape&);

int depth(NodeOf node_of, PlanShape shape) {
  int steps = 0;
  for (TreeNode node = node_of(shape); node.parent >= 0; node = node_of(shape)) shape.rank = node.parent, ++steps;
  return steps;
}

int deepest(NodeOf node_of, int world, int root) {
  int most = 0;
  for (int r = 0; r < world; ++r) most = std::max(most, depth(node_of, {.rank = r, .world = world, .root = root}));
  return most;
}

TEST(Trees, AreAsDeepAsTheySayWhicheverTheRoot) {
  for (int p = 1; p <= 40; ++p) {
    for (const int root : {0, p / 3, p - 1}) {
      EXPECT_EQ(deepest(binomial_tree_node, p, root), std::bit_width(static_cast<unsigned>(p - 1))) << p;
      EXPECT_EQ(deepest(binary_tree_node, p, root), std::bit_width(static_cast<unsigned>(p)) - 1) << p;
      EXPECT_EQ(deepest(chain_node, p, root), p - 1) << p;
    }
  }
}

TEST(Trees, ParentsKnowTheirChildren) {
  for (const NodeOf node_of : {binomial_tree_node, binary_tree_node, chain_node}) {
    for (int r = 0; r < 13; ++r) {
      const TreeNode node = node_of({.rank = r, .world = 13, .root = 4});
      EXPECT_EQ(node.parent < 0, r == 4);
      for (const int child : node.children)
        EXPECT_EQ(node_of({.rank = child, .world = 13, .root = 4}).parent, r) << child;
    }
  }
}

TEST(Trees, TheBinomialOneOfAPowerOfTwoDoublesItsRanksEveryRound) {
  const TreeNode root = binomial_tree_node({.rank = 0, .world = 8});
  EXPECT_EQ(root.children, (std::vector<int>{4, 2, 1}));
  EXPECT_EQ(binomial_tree_node({.rank = 4, .world = 8}).children, (std::vector<int>{6, 5}));
}

// Rank 1 of 3 sends the first segment to rank 2 before it has received the second.
TEST(PipelinedChain, ForwardsASegmentBeforeTheNextHasCome) {
  const Plan plan = pipelined_chain_broadcast({.rank = 1, .world = 3, .elements = 4, .segment = 2});
  ASSERT_EQ(plan.steps.size(), 4u);
  EXPECT_EQ(plan.steps[1].action, Action::send);
  EXPECT_EQ(plan.after(plan.steps[1]).size(), 1u);
  EXPECT_EQ(plan.after(plan.steps[1])[0], 0);
  EXPECT_TRUE(plan.after(plan.steps[2]).empty());
}

TEST(PipelinedTree, NeedsScratchForItsSlotsOnly) {
  const PlanShape shape{.rank = 0, .world = 7, .elements = 1000, .segment = 10, .slots = 3};
  EXPECT_EQ(pipelined_tree_all_reduce(shape).scratch, 30);
  EXPECT_EQ(binomial_tree_all_reduce(shape).scratch, 2000);
}

}  // namespace
}  // namespace annulet::schedule
