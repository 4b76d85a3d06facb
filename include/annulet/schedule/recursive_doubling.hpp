#pragma once
// All-reduce of small vectors by recursive doubling: in round i ranks that differ in bit i exchange whole vectors and
// add. The engine's control all-reduce. With q = the largest power of two <= p, the first 2(p-q) ranks fold in pairs
// before and unfold after. Steps: log2 q, plus 2 where p is no power of two. Elements sent over all ranks: (q log2 q +
// 2(p-q)) n, of a rank log2 q n and 1 more for a fold (n alone of one that only folds). Both partners add the same two
// operands, so a commutative reduction has the same bits on every rank.
#include "annulet/schedule/plan.hpp"

namespace annulet::schedule {

Plan recursive_doubling_all_reduce(int rank, int world, Elements elements);

int recursive_doubling_steps(int world);  // at most: one less where q < p <= 3q/2
Elements recursive_doubling_sends(Elements elements, int world, int rank);
Elements recursive_doubling_total(Elements elements, int world);

}  // namespace annulet::schedule
