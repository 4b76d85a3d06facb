#pragma once
// What messages leave by in the event simulation: a rank's own port, and the card that the ranks of a node share.
#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "annulet/cost/link.hpp"
#include "annulet/schedule/plan.hpp"

namespace annulet::cost {

// Serves one message after the other. What a burst lets pass sooner is owed afterwards.
class Port {
 public:
  // When bytes of a message of `whole` that come at `now` have left; the first of them after its gap.
  Seconds take(Seconds now, const Link& link, Bytes whole, Bytes bytes, bool first) {
    const Seconds start = std::max(free_, now) + (first ? link.gap_of(whole) : Seconds(0));
    paid_ = std::max(paid_, start) + link.pace(whole) * bytes;
    return free_ = std::max(start + link.burst_pace * bytes, paid_ - link.beta * link.burst);
  }

  // Something else that keeps it busy: when it ends.
  Seconds occupy(Seconds now, Seconds time) { return free_ = paid_ = std::max(free_, now) + time; }

 private:
  Seconds free_ = Seconds::min(), paid_ = Seconds::min();
};

// A message on its way out.
struct Outgoing {
  int rank;
  std::size_t collective;
  schedule::StepId step;
  std::size_t message;  // of its channel
  Bytes bytes, rest;
};

// A node's card serves its connections in turn, piece by piece, as TCP does: of messages to several peers none is there
// before its share of the rate allows. Messages of one connection follow one another.
class Card {
 public:
  bool idle() const { return queues_.empty(); }

  void add(int from, int to, const Outgoing& message) {
    const auto connection = std::pair(from, to);
    const auto queue = std::ranges::find(queues_, connection, &Queue::connection);
    (queue != queues_.end() ? *queue : queues_.emplace_back(Queue{connection, {}})).messages.push_back(message);
  }

  // When the next piece has left.
  Seconds next(Seconds now, const Link& link) {
    Outgoing& message = queues_.front().messages.front();
    const bool first = message.rest == message.bytes;
    piece_ = std::min(message.rest, std::max(kPiece, Bytes(message.bytes.value() / kMostPieces)));
    return port_.take(now, link, message.bytes, piece_, first);
  }

  // What it serves since next().
  const Outgoing& serves() const { return queues_.front().messages.front(); }
  Bytes piece() const { return piece_; }

  // The message whose last piece this was.
  std::optional<Outgoing> carried() {
    Queue queue = std::move(queues_.front());
    queues_.pop_front();
    Outgoing message = queue.messages.front();
    message.rest = message.rest - piece_;
    const bool whole = message.rest == Bytes(0);
    whole ? queue.messages.pop_front() : void(queue.messages.front() = message);
    if (!queue.messages.empty()) queues_.push_back(std::move(queue));
    return whole ? std::optional(message) : std::nullopt;
  }

 private:
  static constexpr Bytes kPiece{16 << 10};
  static constexpr std::int64_t kMostPieces = 16;  // of a message, which bounds the work

  struct Queue {
    std::pair<int, int> connection;
    std::deque<Outgoing> messages;
  };

  std::deque<Queue> queues_;  // the next one to be served first
  Bytes piece_{0};            // that is being served
  Port port_;
};

}  // namespace annulet::cost
