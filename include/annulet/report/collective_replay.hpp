#pragma once
// A collective, replayed from the plans of all ranks without running it: what each rank holds after every round
// (schedule/rounds.hpp), what was sent where, how many bytes so far, and how many seconds so far by the event
// simulation of what has been sent. Contents are symbolic: which ranks' contributions an element holds.
#include <span>
#include <vector>

#include "annulet/cost/network.hpp"
#include "annulet/schedule/plan.hpp"
#include "annulet/schedule/validator.hpp"

namespace annulet::report {

struct ReplayInput {
  std::span<const schedule::Plan> plans;   // [rank]
  const schedule::Promise& promise;        // what ranks hold before, and shall hold after
  std::vector<schedule::Interval> chunks;  // how people cut the vector
  Bytes element{4};
  cost::Network network{};
};

struct ReplayMessage {
  int from, to;
  schedule::Interval elements;  // of the vector: what it carries contributions to
};

// A piece on one rank after a round.
struct HeldPiece {
  schedule::Contributions ranks = 0;  // 0: nothing defined
  bool received = false;              // in this round: kept, or added to what was here
  bool finished = false;              // holds what the collective promises
};

struct ReplayFrame {
  std::vector<ReplayMessage> messages;       // of this round
  std::vector<std::vector<HeldPiece>> held;  // [rank, piece]
  std::vector<Bytes> sent;                   // [rank], so far
  Seconds time{0};                           // so far
};

struct Replay {
  std::vector<schedule::Interval> pieces;  // columns, from the first element to the last
  bool chunked = true;                     // they are the chunks; otherwise messages cut the vector elsewhere
  Bytes element{4};
  std::vector<ReplayFrame> frames;  // [round]; 0: before anything is sent

  int ranks() const { return static_cast<int>(frames.front().held.size()); }
  int rounds() const { return static_cast<int>(frames.size()) - 1; }
  Bytes sent(int round) const;  // so far, by all ranks
};

// Throws ContractError unless the plans fit together.
Replay replay_collective(const ReplayInput& input);

}  // namespace annulet::report
