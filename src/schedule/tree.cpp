#include "annulet/schedule/tree.hpp"

#include <algorithm>

namespace annulet::schedule {
namespace {

int position_of(const PlanShape& shape) {
  ANNULET_EXPECTS(shape.root >= 0 && shape.root < shape.world, "the root is a rank");
  return (shape.rank - shape.root + shape.world) % shape.world;
}

int rank_at(const PlanShape& shape, int position) { return (position + shape.root) % shape.world; }

// Both directions, written into one builder, so that an all-reduce is the one followed by the other.
class TreePlan {
 public:
  TreePlan(const PlanShape& shape, const TreeNode& node)
      : shape_(shape), node_(node), builder_(shape.rank, shape.world, shape.elements) {
    ANNULET_EXPECTS(shape.segment > 0 && shape.slots > 0,
                    "a tree sends segments of at least one element through slots");
    const auto count = static_cast<std::size_t>(segments({0, shape.elements}, shape.segment));
    ready_.assign(count, kNoStep), sent_up_.assign(count, kNoStep);
    slot_free_.assign(static_cast<std::size_t>(shape.slots), kNoStep);
  }

  void reduce() {
    for (std::size_t s = 0; s < ready_.size(); ++s) {
      for (auto child = node_.children.rbegin(); child != node_.children.rend(); ++child) receive_and_add(*child, s);
      if (node_.parent >= 0) sent_up_[s] = builder_.send(node_.parent, piece(s), {ready_[s]});
    }
  }

  // What was sent upwards must have left before the result overwrites it.
  void broadcast() {
    for (std::size_t s = 0; s < ready_.size(); ++s) {
      if (node_.parent >= 0) ready_[s] = builder_.receive(node_.parent, piece(s), {sent_up_[s]});
      for (const int child : node_.children) builder_.send(child, piece(s), {ready_[s]});
    }
  }

  Plan finish() { return std::move(builder_).finish(); }

 private:
  Region piece(std::size_t s) const {
    return {Place::data, segment_of({0, shape_.elements}, shape_.segment, static_cast<Elements>(s))};
  }

  void receive_and_add(int child, std::size_t s) {
    const Region target = piece(s);
    StepId& slot_free = slot_free_[next_slot_];
    const Elements slot_size = std::min(shape_.segment, shape_.elements);
    const Region slot{Place::scratch, {static_cast<Elements>(next_slot_) * slot_size, target.interval.count}};
    const StepId arrived = builder_.receive(child, slot, {slot_free});
    ready_[s] = slot_free = builder_.combine(slot, target, {arrived, ready_[s]});
    next_slot_ = (next_slot_ + 1) % slot_free_.size();
  }

  PlanShape shape_;
  TreeNode node_;
  PlanBuilder builder_;
  std::vector<StepId> ready_;      // [segment]: the step that made it fit to be sent
  std::vector<StepId> sent_up_;    // [segment]: its send to the parent
  std::vector<StepId> slot_free_;  // [slot]: the combine that emptied it
  std::size_t next_slot_ = 0;
};

}  // namespace

TreeNode binomial_tree_node(const PlanShape& shape) {
  const int position = position_of(shape);
  TreeNode node;
  for (int lo = 0, hi = shape.world; hi - lo > 1;) {
    const int upper = lo + (hi - lo) / 2;
    if (position == upper) node.parent = rank_at(shape, lo);
    if (position == lo) node.children.push_back(rank_at(shape, upper));
    (position < upper ? hi : lo) = upper;
  }
  return node;
}

TreeNode binary_tree_node(const PlanShape& shape) {
  const int position = position_of(shape);
  TreeNode node;
  if (position > 0) node.parent = rank_at(shape, (position - 1) / 2);
  for (const int child : {2 * position + 1, 2 * position + 2}) {
    if (child < shape.world) node.children.push_back(rank_at(shape, child));
  }
  return node;
}

TreeNode chain_node(const PlanShape& shape) {
  const int position = position_of(shape);
  TreeNode node;
  if (position > 0) node.parent = rank_at(shape, position - 1);
  if (position + 1 < shape.world) node.children.push_back(rank_at(shape, position + 1));
  return node;
}

Plan tree_broadcast(const PlanShape& shape, const TreeNode& node) {
  TreePlan plan(shape, node);
  plan.broadcast();
  return plan.finish();
}

Plan tree_reduce(const PlanShape& shape, const TreeNode& node) {
  TreePlan plan(shape, node);
  plan.reduce();
  return plan.finish();
}

Plan tree_all_reduce(const PlanShape& shape, const TreeNode& node) {
  TreePlan plan(shape, node);
  plan.reduce();
  plan.broadcast();
  return plan.finish();
}

Elements tree_broadcast_sends(const PlanShape& shape, const TreeNode& node) {
  return static_cast<Elements>(node.children.size()) * shape.elements;
}

Elements tree_reduce_sends(const PlanShape& shape, const TreeNode& node) {
  return node.parent >= 0 ? shape.elements : 0;
}

Elements tree_all_reduce_sends(const PlanShape& shape, const TreeNode& node) {
  return tree_reduce_sends(shape, node) + tree_broadcast_sends(shape, node);
}

}  // namespace annulet::schedule
