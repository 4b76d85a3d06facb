#pragma once
// Proves a set of plans, one per rank, by running them on sets of contributions instead of numbers. Use it in the unit
// test of every new collective. It demands that
//   - the k-th send from a to b meets the k-th receive of b from a, with the same count;
//   - everything finishes when a send completes only with its receive (rendezvous), sends and receives are posted in
//     order, and a rank has one of each in flight: then also with any other bound on the messages in flight;
//   - nothing undefined is sent or combined, and no contribution is combined twice;
//   - nothing is written into the input of an out-of-place collective, where what a rank contributes then is;
//   - conflicting uses of a region within a rank are ordered by `after`;
//   - at the end every element holds what the collective promises.
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "annulet/schedule/algorithms.hpp"
#include "annulet/schedule/plan.hpp"

namespace annulet::schedule {

// Which ranks' contributions an element holds: bit r for rank r (so at most 63 ranks); 0 is undefined.
using Contributions = std::uint64_t;

// What an element of a rank's data holds before, or must hold after; 0 after: anything.
using Expectation = std::function<Contributions(int rank, Elements element)>;

struct Promise {
  Expectation before;
  Expectation after;
};

Promise all_reduce_promise(int world);
Promise reduce_scatter_promise(int world, Elements elements);
Promise all_gather_promise(int world, Elements elements);
Promise broadcast_promise(int root);          // the root's, on all ranks; nothing is read elsewhere before it has come
Promise reduce_promise(int world, int root);  // everyone's, on the root
Promise gather_promise(std::span<const Elements> lengths);  // sparse: pieces in rank order, lengths[r] of rank r

// The one of these that a collective of algorithms.hpp makes.
Promise promise_of(Collective collective, const PlanShape& shape);

// Empty when the plans keep the promise, otherwise what is wrong and where.
std::string validate(std::span<const Plan> plans, const Promise& promise);

}  // namespace annulet::schedule
