#pragma once
// The sizes at which one algorithm of a collective overtakes another, from their closed forms. On one link ring and
// recursive doubling of 8 ranks are equal where 14 alpha + 14/8 M beta = 3 (alpha + M beta), M = 8.8 alpha / beta.
#include <span>
#include <vector>

#include "annulet/cost/closed_form.hpp"

namespace annulet::cost {

// From `size` on `above` is faster than `below`, which is faster for smaller vectors.
struct Crossover {
  schedule::Algorithm below = schedule::Algorithm::ring, above = schedule::Algorithm::ring;
  Bytes size{0};
  Seconds time{0};  // of either, there
};

// Between all pairs of algorithms, from 1 B to 1 TiB, by size: in factors of two until the faster one changes, then by
// bisection. Two changes within a factor of two are not seen. The same answer for the same input.
std::vector<Crossover> crossovers(schedule::Collective collective, int ranks, std::span<const Link> links);

}  // namespace annulet::cost
