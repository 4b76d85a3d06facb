#include "link_text.hpp"

#include <fmt/format.h>

#include "annulet/cost/closed_form.hpp"

namespace annulet::plan {
namespace {

bool same(const cost::Link& a, const cost::Link& b) {
  return a.alpha == b.alpha && a.gap == b.gap && a.beta == b.beta && a.gamma == b.gamma;
}

std::string rate(cost::SecondsPerByte pace) {
  return pace.value() > 0 ? to_text(ByteRate(1 / pace.value())) : "unlimited";
}

std::string brief(const cost::Link& link) { return fmt::format("alpha {}, {}", to_text(link.alpha), rate(link.beta)); }

}  // namespace

std::string links_text(const cost::Machine& machine, int ranks) {
  const int per_node = machine.device.ranks_per_node;
  const auto links = cost::links_of(machine, ranks);
  if (same(machine.inside, machine.between)) return brief(machine.inside);
  if (links.size() == 2) {
    return fmt::format("nodes of {}, inside {}, between {}", per_node, brief(machine.inside), brief(machine.between));
  }
  const bool inside = per_node > 1;
  return fmt::format("{} ({})", inside ? fmt::format("inside a node of {}", per_node) : "between nodes",
                     brief(links.front()));
}

std::string link_inputs(const cost::Link& link) {
  std::string text = fmt::format("alpha = {}, 1 / beta = {}", to_text(link.alpha), rate(link.beta));
  if (link.gap > Seconds(0)) text += fmt::format(", g = {}", to_text(link.gap));
  if (link.gamma.value() > 0) text += fmt::format(", 1 / gamma = {}", rate(link.gamma));
  return text;
}

std::vector<std::string> link_notes(const cost::Machine& machine, int ranks) {
  const int per_node = machine.device.ranks_per_node;
  if (ranks == 1 || same(machine.inside, machine.between)) return {};
  if (per_node == 0) {
    return {
        "The machine file does not say how many ranks share a node (ranks_per_node in [device]): each is taken to be "
        "on "
        "a node of its own."};
  }
  if (per_node == 1 || ranks <= per_node) return {};
  return {
      "Ranks are in host order, and a step waits for its slowest hop. Every rank has the whole link between nodes, as "
      "with a network card each; where a node's ranks share one, that holds for the ring, which crosses it once."};
}

}  // namespace annulet::plan
