#include "annulet/comm/in_process.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <mutex>
#include <vector>

#include "annulet/base/error.hpp"

namespace annulet::comm {
namespace {

struct PostedSend {
  int from;
  int tag;
  std::uint64_t token;
  std::span<const std::byte> bytes;
};

struct PostedReceive {
  int from;
  int tag;
  std::uint64_t token;
  std::span<std::byte> bytes;
};

struct Mailbox {
  std::deque<PostedSend> sends;        // to this rank, not yet received
  std::deque<PostedReceive> receives;  // of this rank, not yet sent
  std::deque<std::uint64_t> finished;  // tokens of this rank's messages
};

template <class Queue>
auto find_match(Queue& queue, int from, int tag) {
  return std::find_if(queue.begin(), queue.end(), [&](const auto& m) { return m.from == from && m.tag == tag; });
}

}  // namespace

struct InProcessNetwork::State {
  std::mutex mutex;
  std::vector<Mailbox> mailboxes;
  int tag_count = 0;
};

namespace {

class InProcessTransport final : public Transport {
 public:
  InProcessTransport(InProcessNetwork::State& state, int rank) : state_(state), rank_(rank) {}

  int rank() const override { return rank_; }
  int world() const override { return static_cast<int>(state_.mailboxes.size()); }
  int tag_count() const override { return state_.tag_count; }
  const Traffic& traffic() const override { return traffic_; }

  void post_send(const Envelope& envelope, std::span<const std::byte> bytes) override {
    const std::lock_guard lock(state_.mutex);
    ++traffic_.posted;
    traffic_.sent[static_cast<std::size_t>(envelope.purpose)] += Bytes(static_cast<std::int64_t>(bytes.size()));
    Mailbox& there = box(envelope.peer);
    const PostedSend send{rank_, envelope.tag, envelope.token, bytes};
    const auto match = find_match(there.receives, rank_, envelope.tag);
    if (match == there.receives.end()) return there.sends.push_back(send);
    deliver(send, *match, envelope.peer);
    there.receives.erase(match);
  }

  void post_receive(const Envelope& envelope, std::span<std::byte> bytes) override {
    const std::lock_guard lock(state_.mutex);
    ++traffic_.posted;
    Mailbox& here = box(rank_);
    const PostedReceive receive{envelope.peer, envelope.tag, envelope.token, bytes};
    const auto match = find_match(here.sends, envelope.peer, envelope.tag);
    if (match == here.sends.end()) return here.receives.push_back(receive);
    deliver(*match, receive, rank_);
    here.sends.erase(match);
  }

  std::size_t poll(std::span<std::uint64_t> finished) override {
    const std::lock_guard lock(state_.mutex);
    auto& queue = box(rank_).finished;
    const std::size_t count = std::min(finished.size(), queue.size());
    std::copy_n(queue.begin(), count, finished.begin());
    queue.erase(queue.begin(), queue.begin() + static_cast<std::ptrdiff_t>(count));
    traffic_.completed += static_cast<std::int64_t>(count);
    return count;
  }

 private:
  Mailbox& box(int rank) { return state_.mailboxes[static_cast<std::size_t>(rank)]; }

  void deliver(const PostedSend& send, const PostedReceive& receive, int receiver) {
    if (send.bytes.size() != receive.bytes.size()) {
      throw RunError({fmt::format("rank {} received {} bytes from rank {}, expected {}", receiver, send.bytes.size(),
                                  send.from, receive.bytes.size()),
                      "the ranks do not run the same plan"});
    }
    std::copy(send.bytes.begin(), send.bytes.end(), receive.bytes.begin());
    box(send.from).finished.push_back(send.token);
    box(receiver).finished.push_back(receive.token);
  }

  InProcessNetwork::State& state_;
  int rank_;
  Traffic traffic_;
};

}  // namespace

InProcessNetwork::InProcessNetwork(int world, int tag_count) : state_(std::make_unique<State>()) {
  state_->mailboxes.resize(static_cast<std::size_t>(world));
  state_->tag_count = tag_count;
}

InProcessNetwork::~InProcessNetwork() = default;

std::unique_ptr<Transport> InProcessNetwork::connect(int rank) {
  return std::make_unique<InProcessTransport>(*state_, rank);
}

}  // namespace annulet::comm
