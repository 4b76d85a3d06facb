#include "annulet/cost/network.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace annulet::cost {

int Network::nodes() const { return node.empty() ? 1 : 1 + *std::max_element(node.begin(), node.end()); }

std::string to_text(const Network& network) {
  if (network.nodes() == 1) return to_text(network.inside);
  return fmt::format("inside a node: {}\nbetween {} nodes: {}", to_text(network.inside), network.nodes(),
                     to_text(network.between));
}

}  // namespace annulet::cost
