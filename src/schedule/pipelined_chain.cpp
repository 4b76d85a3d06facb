#include "annulet/schedule/pipelined_chain.hpp"

#include "annulet/schedule/tree.hpp"

namespace annulet::schedule {

Plan pipelined_chain_broadcast(const PlanShape& shape) { return tree_broadcast(shape, chain_node(shape)); }

Plan pipelined_chain_reduce(const PlanShape& shape) { return tree_reduce(shape, chain_node(shape)); }

int pipelined_chain_steps(int world) { return world - 1; }

Elements pipelined_chain_broadcast_sends(const PlanShape& shape) {
  const bool last = (shape.rank + 1) % shape.world == shape.root;
  return last ? 0 : shape.elements;
}

Elements pipelined_chain_reduce_sends(const PlanShape& shape) { return shape.rank == shape.root ? 0 : shape.elements; }

}  // namespace annulet::schedule
