#pragma once
// Replays of the collectives that there are, on a link of 1 us and 1 GB/s.
#include "annulet/report/collective_replay.hpp"
#include "annulet/schedule/algorithms.hpp"

namespace annulet::report::replays {

inline cost::Network network() {
  cost::Link link;
  link.alpha = Seconds(1e-6), link.beta = cost::SecondsPerByte(1e-9);
  return link;
}

inline std::vector<schedule::Plan> plans(schedule::Collective collective, schedule::Algorithm algorithm,
                                         schedule::PlanShape shape) {
  std::vector<schedule::Plan> all;
  for (shape.rank = 0; shape.rank < shape.world; ++shape.rank)
    all.push_back(schedule::make_plan(collective, algorithm, shape));
  return all;
}

inline std::vector<schedule::Interval> chunks(Elements elements, int world) {
  std::vector<schedule::Interval> all;
  for (int r = 0; r < world; ++r) all.push_back(schedule::chunk(elements, world, r));
  return all;
}

inline Replay of(schedule::Collective collective, schedule::Algorithm algorithm, const schedule::PlanShape& shape) {
  const auto all = plans(collective, algorithm, shape);
  const schedule::Promise promise = schedule::promise_of(collective, shape);
  return replay_collective({all, promise, chunks(shape.elements, shape.world), Bytes(4), network()});
}

}  // namespace annulet::report::replays
