#include "annulet/measure/clock_offset.hpp"

#include <fmt/format.h>

#include <array>
#include <thread>

#include "annulet/base/error.hpp"

namespace annulet::measure {
namespace {

using Nanoseconds = std::chrono::nanoseconds;

constexpr int kTag = 0;

std::int64_t now() { return std::chrono::duration_cast<Nanoseconds>(Clock::now().time_since_epoch()).count(); }

// Blocking messages of one number, over a transport that never blocks.
class Line {
 public:
  Line(comm::Transport& transport, Seconds deadline) : transport_(transport), deadline_(deadline) {}

  void send(int peer, std::int64_t value) {
    transport_.post_send(envelope(peer), std::as_bytes(std::span(&value, 1)));
    finish(peer);
  }

  std::int64_t receive(int peer) {
    std::int64_t value = 0;
    transport_.post_receive(envelope(peer), std::as_writable_bytes(std::span(&value, 1)));
    finish(peer);
    return value;
  }

 private:
  static comm::Envelope envelope(int peer) { return {peer, kTag, comm::Purpose::control, 0}; }

  void finish(int peer) {
    const Instant start = Clock::now();
    std::array<std::uint64_t, 1> finished{};
    while (transport_.poll(finished) == 0) {
      if (Clock::now() - start > deadline_) {
        throw RunError({fmt::format("rank {}: no answer about its clock from rank {} for {}", transport_.rank(), peer,
                                    annulet::to_text(deadline_)),
                        "that rank is stopped, far behind or gone", "Look at that rank"});
      }
      std::this_thread::yield();
    }
  }

  comm::Transport& transport_;
  Seconds deadline_;
};

void answer(Line& line, int peer, int exchanges) {
  for (int i = 0; i < exchanges; ++i) {
    line.receive(peer);
    line.send(peer, now());
  }
}

ClockOffset ask(Line& line, int exchanges) {
  std::int64_t quickest = 0, ahead = 0;
  for (int i = 0; i < exchanges; ++i) {
    const std::int64_t asked = now();
    line.send(0, asked);
    const std::int64_t theirs = line.receive(0), took = now() - asked;
    if (i > 0 && took >= quickest) continue;
    quickest = took;
    ahead = asked + took / 2 - theirs;
  }
  return {Nanoseconds(ahead), Seconds(Nanoseconds(quickest)) / 2};
}

}  // namespace

ClockOffset clock_offset(const TransportFactory& make_transport, int exchanges, Seconds deadline) {
  ANNULET_EXPECTS(exchanges > 0, "a clock is compared by at least one exchange");
  const auto transport = make_transport();
  if (!transport || transport->world() == 1) return {};
  Line line(*transport, deadline);
  if (transport->rank() != 0) return ask(line, exchanges);
  for (int peer = 1; peer < transport->world(); ++peer) answer(line, peer, exchanges);
  return {};
}

}  // namespace annulet::measure
