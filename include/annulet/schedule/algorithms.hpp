#pragma once
// Which algorithms each collective has, by name, with the plan and the closed forms of each. The forms are explained in
// the headers of the algorithms; tests check them against the plans.
//   all_reduce      ring, recursive_doubling, recursive_halving_doubling, binomial_tree, pipelined_tree, direct
//   reduce_scatter  ring, recursive_halving, direct
//   all_gather      ring, recursive_doubling, bruck, direct
//   broadcast       binomial_tree, pipelined_chain
//   reduce          binomial_tree, pipelined_chain
// After a reduce-scatter rank r holds the sum of chunk r; before an all-gather it holds chunk r. A reduce leaves the
// sum on the root; elsewhere, as outside of chunk r after a reduce-scatter, data holds partial sums.
#include <span>
#include <string_view>
#include <vector>

#include "annulet/schedule/plan.hpp"
#include "annulet/schedule/plan_shape.hpp"

namespace annulet::schedule {

enum class Collective : std::uint8_t { all_reduce, reduce_scatter, all_gather, broadcast, reduce };

enum class Algorithm : std::uint8_t {
  ring,
  recursive_doubling,
  recursive_halving,
  recursive_halving_doubling,
  binomial_tree,
  pipelined_tree,
  pipelined_chain,
  bruck,
  direct,
};

// As the enumerators are spelt.
std::string_view to_text(Collective collective);
std::string_view to_text(Algorithm algorithm);

// Throw InputError listing the names.
Collective parse_collective(std::string_view text);
Algorithm parse_algorithm(std::string_view text);

std::span<const Collective> collectives();
std::vector<Algorithm> algorithms_of(Collective collective);
bool has_algorithm(Collective collective, Algorithm algorithm);

// These throw InputError listing the collective's algorithms where it does not have this one.
// The plan of shape.rank.
Plan make_plan(Collective collective, Algorithm algorithm, const PlanShape& shape);

// Messages on the longest way from a rank to another, n >= p; each costs one latency.
int steps(Collective collective, Algorithm algorithm, int world);

// Elements that shape.rank sends, and that all ranks send.
Elements planned_sends(Collective collective, Algorithm algorithm, const PlanShape& shape);
Elements planned_total(Collective collective, Algorithm algorithm, Elements elements, int world);

}  // namespace annulet::schedule
