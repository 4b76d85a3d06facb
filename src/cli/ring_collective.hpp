#pragma once
// Which collective annulet ring steps through: the plans of all ranks, from what is asked for.
#include <string>
#include <vector>

#include "annulet/report/collective_replay.hpp"

namespace annulet::cli {

struct RingQuestion {
  std::string collective = "all_reduce";  // of schedule/algorithms.hpp, or sparse_all_gather
  std::string algorithm{};                // empty: the first that the collective has
  int ranks = 4;
  Elements elements = 16;
  Elements segment = 0;             // 0: as long as a chunk
  int root = 0;                     // of a broadcast or a reduce
  std::vector<Elements> lengths{};  // of the sparse all-gather's pieces, [rank]; empty: chunks of `elements`
};

struct SteppedCollective {
  std::string name;     // "all_reduce by ring"
  std::string formula;  // of its steps in p, with chunks sent whole, where there is a short one: "2 (p-1)"
  int formula_steps = -1;
  bool sparse = false;
  std::vector<schedule::Plan> plans;  // [rank]
  schedule::Promise promise;
  std::vector<schedule::Interval> chunks;

  Elements elements() const { return plans.front().elements; }
  int ranks() const { return static_cast<int>(plans.size()); }
};

// Throws InputError for what there is not, or is too much to be drawn.
SteppedCollective stepped_collective(const RingQuestion& question);

}  // namespace annulet::cli
