#include "annulet/schedule/algorithms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "annulet/schedule/binomial_tree.hpp"
#include "annulet/schedule/bruck.hpp"
#include "annulet/schedule/direct.hpp"
#include "annulet/schedule/pipelined_chain.hpp"
#include "annulet/schedule/pipelined_tree.hpp"
#include "annulet/schedule/recursive_doubling.hpp"
#include "annulet/schedule/recursive_halving.hpp"
#include "annulet/schedule/ring.hpp"

namespace annulet::schedule {
namespace {

constexpr std::array kCollectives{Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather,
                                  Collective::broadcast, Collective::reduce};

constexpr std::array kAlgorithms{Algorithm::ring,
                                 Algorithm::recursive_doubling,
                                 Algorithm::recursive_halving,
                                 Algorithm::recursive_halving_doubling,
                                 Algorithm::binomial_tree,
                                 Algorithm::pipelined_tree,
                                 Algorithm::pipelined_chain,
                                 Algorithm::bruck,
                                 Algorithm::direct};

struct Entry {
  Collective collective;
  Algorithm algorithm;
  Plan (*plan)(const PlanShape&);
  int (*steps)(int world);
  Elements (*sends)(const PlanShape&);
  Elements (*total)(Elements elements, int world);
};

Elements once_to_all(Elements elements, int world) { return Elements{world - 1} * elements; }
Elements twice_to_all(Elements elements, int world) { return Elements{2} * (world - 1) * elements; }

int one_step(int world) { return std::min(world - 1, 1); }
int two_steps(int world) { return 2 * one_step(world); }
int ring_steps(int world) { return world - 1; }
int twice_binomial_tree_steps(int world) { return 2 * binomial_tree_steps(world); }

Plan doubling_plan(const PlanShape& s) { return recursive_doubling_all_reduce(s.rank, s.world, s.elements); }

template <Elements (*kSends)(Elements, int, int)>
Elements of_shape(const PlanShape& s) {
  return kSends(s.elements, s.world, s.rank);
}

constexpr Entry kEntries[] = {
    {Collective::all_reduce, Algorithm::ring, ring_all_reduce, ring_all_reduce_steps, of_shape<ring_all_reduce_sends>,
     ring_all_reduce_total},
    {Collective::all_reduce, Algorithm::recursive_doubling, doubling_plan, recursive_doubling_steps,
     of_shape<recursive_doubling_sends>, recursive_doubling_total},
    {Collective::all_reduce, Algorithm::recursive_halving_doubling, recursive_halving_doubling_all_reduce,
     recursive_halving_doubling_steps, recursive_halving_doubling_all_reduce_sends, twice_to_all},
    {Collective::all_reduce, Algorithm::binomial_tree, binomial_tree_all_reduce, twice_binomial_tree_steps,
     binomial_tree_all_reduce_sends, twice_to_all},
    {Collective::all_reduce, Algorithm::pipelined_tree, pipelined_tree_all_reduce, pipelined_tree_steps,
     pipelined_tree_all_reduce_sends, twice_to_all},
    {Collective::all_reduce, Algorithm::direct, direct_all_reduce, two_steps, direct_all_reduce_sends, twice_to_all},

    {Collective::reduce_scatter, Algorithm::ring, ring_reduce_scatter, ring_steps, of_shape<ring_reduce_scatter_sends>,
     once_to_all},
    {Collective::reduce_scatter, Algorithm::recursive_halving, recursive_halving_reduce_scatter,
     recursive_halving_steps, recursive_halving_reduce_scatter_sends, once_to_all},
    {Collective::reduce_scatter, Algorithm::direct, direct_reduce_scatter, one_step, direct_reduce_scatter_sends,
     once_to_all},

    {Collective::all_gather, Algorithm::ring, ring_all_gather, ring_steps, of_shape<ring_all_gather_sends>,
     once_to_all},
    {Collective::all_gather, Algorithm::recursive_doubling, recursive_doubling_all_gather, recursive_halving_steps,
     recursive_doubling_all_gather_sends, once_to_all},
    {Collective::all_gather, Algorithm::bruck, bruck_all_gather, bruck_steps, bruck_all_gather_sends, once_to_all},
    {Collective::all_gather, Algorithm::direct, direct_all_gather, one_step, direct_all_gather_sends, once_to_all},

    {Collective::broadcast, Algorithm::binomial_tree, binomial_tree_broadcast, binomial_tree_steps,
     binomial_tree_broadcast_sends, once_to_all},
    {Collective::broadcast, Algorithm::pipelined_chain, pipelined_chain_broadcast, pipelined_chain_steps,
     pipelined_chain_broadcast_sends, once_to_all},

    {Collective::reduce, Algorithm::binomial_tree, binomial_tree_reduce, binomial_tree_steps,
     binomial_tree_reduce_sends, once_to_all},
    {Collective::reduce, Algorithm::pipelined_chain, pipelined_chain_reduce, pipelined_chain_steps,
     pipelined_chain_reduce_sends, once_to_all},
};

template <class Range>
std::string names_of(const Range& values) {
  std::string names;
  for (const auto value : values) names += fmt::format("{}{}", names.empty() ? "" : ", ", to_text(value));
  return names;
}

template <class Range>
auto parse(std::string_view text, const Range& values, std::string_view kind) {
  const auto found = std::ranges::find_if(values, [&](auto value) { return to_text(value) == text; });
  if (found != values.end()) return *found;
  throw InputError({fmt::format("'{}' is no {}", text, kind), "", fmt::format("Known: {}", names_of(values))});
}

const Entry& entry(Collective collective, Algorithm algorithm) {
  const auto found = std::ranges::find_if(
      kEntries, [&](const Entry& e) { return e.collective == collective && e.algorithm == algorithm; });
  if (found != std::end(kEntries)) return *found;
  throw InputError({fmt::format("{} has no algorithm {}", to_text(collective), to_text(algorithm)), "",
                    fmt::format("It has: {}", names_of(algorithms_of(collective)))});
}

}  // namespace

std::string_view to_text(Collective collective) {
  switch (collective) {
    case Collective::all_reduce:
      return "all_reduce";
    case Collective::reduce_scatter:
      return "reduce_scatter";
    case Collective::all_gather:
      return "all_gather";
    case Collective::broadcast:
      return "broadcast";
    case Collective::reduce:
      return "reduce";
  }
  return "unknown";
}

std::string_view to_text(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::ring:
      return "ring";
    case Algorithm::recursive_doubling:
      return "recursive_doubling";
    case Algorithm::recursive_halving:
      return "recursive_halving";
    case Algorithm::recursive_halving_doubling:
      return "recursive_halving_doubling";
    case Algorithm::binomial_tree:
      return "binomial_tree";
    case Algorithm::pipelined_tree:
      return "pipelined_tree";
    case Algorithm::pipelined_chain:
      return "pipelined_chain";
    case Algorithm::bruck:
      return "bruck";
    case Algorithm::direct:
      return "direct";
  }
  return "unknown";
}

Collective parse_collective(std::string_view text) { return parse(text, kCollectives, "collective"); }

Algorithm parse_algorithm(std::string_view text) { return parse(text, kAlgorithms, "algorithm"); }

std::span<const Collective> collectives() { return kCollectives; }

std::vector<Algorithm> algorithms_of(Collective collective) {
  std::vector<Algorithm> algorithms;
  for (const Entry& e : kEntries) {
    if (e.collective == collective) algorithms.push_back(e.algorithm);
  }
  return algorithms;
}

bool has_algorithm(Collective collective, Algorithm algorithm) {
  const auto algorithms = algorithms_of(collective);
  return std::ranges::find(algorithms, algorithm) != algorithms.end();
}

Plan make_plan(Collective collective, Algorithm algorithm, const PlanShape& shape) {
  return entry(collective, algorithm).plan(shape);
}

int steps(Collective collective, Algorithm algorithm, int world) { return entry(collective, algorithm).steps(world); }

Elements planned_sends(Collective collective, Algorithm algorithm, const PlanShape& shape) {
  return entry(collective, algorithm).sends(shape);
}

Elements planned_total(Collective collective, Algorithm algorithm, Elements elements, int world) {
  return entry(collective, algorithm).total(elements, world);
}

}  // namespace annulet::schedule
