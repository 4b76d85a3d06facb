#pragma once
// The network between ranks: a link inside a node, a link between nodes, and the node of each rank.
//   inside   every rank has a port of its own
//   between  all ranks of a node share its card, which serves connections in turn, piece by piece
// One link alone is a network in which every rank has its own port, such as an emulated link gives.
#include <string>
#include <vector>

#include "annulet/cost/link.hpp"

namespace annulet::cost {

struct Network {
  Network() = default;
  Network(const Link& link) : inside(link), between(link) {}  // implicit: a link is the simplest network
  Network(Link in, Link out, std::vector<int> node_of)
      : inside(std::move(in)), between(std::move(out)), node(std::move(node_of)) {}

  Link inside, between;
  std::vector<int> node{};  // [rank], numbered from 0; empty: all ranks on one node

  int node_of(int rank) const { return node.empty() ? 0 : node.at(static_cast<std::size_t>(rank)); }
  const Link& link(int from, int to) const { return node_of(from) == node_of(to) ? inside : between; }
  int nodes() const;

  // The one that bounds a ring in rank order: between nodes where there are several.
  const Link& ring_link() const { return nodes() > 1 ? between : inside; }
};

// The link where there is one node; both otherwise.
std::string to_text(const Network& network);

}  // namespace annulet::cost
