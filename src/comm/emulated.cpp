#include "annulet/comm/emulated.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <vector>

#include "annulet/base/error.hpp"

namespace annulet::comm {
namespace {

class EmulatedTransport final : public Transport {
 public:
  EmulatedTransport(std::unique_ptr<Transport> beneath, EmulatedLink link)
      : beneath_(std::move(beneath)), link_(link) {}

  int rank() const override { return beneath_->rank(); }
  int world() const override { return beneath_->world(); }
  int tag_count() const override { return beneath_->tag_count() / 2; }

  // The messages of this link: the arrival notices beneath it are not counted.
  const Traffic& traffic() const override {
    traffic_.sent = beneath_->traffic().sent;
    return traffic_;
  }

  void post_send(const Envelope& envelope, std::span<const std::byte> bytes) override {
    const std::uint64_t message = open(envelope.token);
    beneath_->post_send({envelope.peer, 2 * envelope.tag, envelope.purpose, message}, bytes);
    const Seconds occupied = Bytes(static_cast<std::int64_t>(bytes.size())) / link_.bandwidth;
    port_free_ = std::max(port_free_, Clock::now()) + std::chrono::duration_cast<Clock::duration>(occupied);
    departures_.push_back({port_free_, message});
    const Instant arrival = port_free_ + std::chrono::duration_cast<Clock::duration>(link_.latency);
    const int tag = 2 * envelope.tag + 1;
    notices_.push_back({arrival, {envelope.peer, tag, envelope.purpose, kNotice | static_cast<std::uint64_t>(tag)}});
    ++under_way(tag);
  }

  void post_receive(const Envelope& envelope, std::span<std::byte> bytes) override {
    const std::uint64_t message = open(envelope.token);
    beneath_->post_receive({envelope.peer, 2 * envelope.tag, envelope.purpose, message}, bytes);
    beneath_->post_receive({envelope.peer, 2 * envelope.tag + 1, envelope.purpose, message}, {});
  }

  std::size_t poll(std::span<std::uint64_t> finished) override { return look(finished, &Transport::poll); }
  std::size_t glance(std::span<std::uint64_t> finished) override { return look(finished, &Transport::glance); }

  bool has_arrived(int tag) const override {
    const auto is_of_tag = [&](const UnderWay& some) { return some.tag == 2 * tag + 1; };
    return std::ranges::none_of(under_way_, is_of_tag);
  }

  Instant next_event() const override {
    Instant next = beneath_->next_event();
    if (!departures_.empty()) next = std::min(next, departures_.front().left);
    if (!notices_.empty()) next = std::min(next, notices_.front().due);
    return next;
  }

 private:
  std::size_t look(std::span<std::uint64_t> finished, std::size_t (Transport::*beneath)(std::span<std::uint64_t>)) {
    const Instant now = Clock::now();
    while (!notices_.empty() && notices_.front().due <= now) {
      beneath_->post_send(notices_.front().envelope, {});
      notices_.pop_front();
    }
    std::size_t whole = 0;
    const auto finish_part = [&](std::uint64_t index) {
      Message& message = messages_[static_cast<std::size_t>(index)];
      if (--message.parts > 0) return;
      finished[whole++] = message.token;
      free_.push_back(index);
    };
    for (; whole < finished.size() && !departures_.empty() && departures_.front().left <= now;
         departures_.pop_front()) {
      finish_part(departures_.front().message);
    }
    std::array<std::uint64_t, 32> parts{};
    const std::size_t most = std::min(parts.size(), finished.size() - whole);
    const std::size_t count = (beneath_.get()->*beneath)(std::span(parts).first(most));
    for (const std::uint64_t part : std::span(parts).first(count)) {
      if ((part & kNotice) != 0) {
        deliver(static_cast<int>(part & ~kNotice));
      } else {
        finish_part(part);
      }
    }
    traffic_.completed += static_cast<std::int64_t>(whole);
    return whole;
  }

  static constexpr std::uint64_t kNotice = std::uint64_t{1} << 63;  // the token of a notice; its tag below

  struct Message {
    std::uint64_t token;
    int parts;  // of a send the bytes and leaving the port, of a receive the bytes and the notice
  };
  struct Departure {
    Instant left;
    std::uint64_t message;
  };
  struct Notice {
    Instant due;
    Envelope envelope;
  };
  struct UnderWay {
    int tag;
    int notices;
  };

  int& under_way(int tag) {
    const auto known = std::ranges::find(under_way_, tag, &UnderWay::tag);
    return known != under_way_.end() ? known->notices : under_way_.emplace_back(tag, 0).notices;
  }

  void deliver(int tag) {
    const auto known = std::ranges::find(under_way_, tag, &UnderWay::tag);
    if (--known->notices > 0) return;
    *known = under_way_.back();
    under_way_.pop_back();
  }

  std::uint64_t open(std::uint64_t token) {
    ++traffic_.posted;
    if (free_.empty()) {
      messages_.push_back({token, 2});
      return messages_.size() - 1;
    }
    const std::uint64_t index = free_.back();
    free_.pop_back();
    messages_[static_cast<std::size_t>(index)] = {token, 2};
    return index;
  }

  std::unique_ptr<Transport> beneath_;
  EmulatedLink link_;
  Instant port_free_{};
  std::deque<Departure> departures_;  // in the order in which they leave
  std::deque<Notice> notices_;        // in the order of arrival: one queue, one latency
  std::vector<UnderWay> under_way_;   // by tag, of the few that have any
  std::vector<Message> messages_;
  std::vector<std::uint64_t> free_;
  mutable Traffic traffic_;
};

}  // namespace

EmulatedLink parse_emulated_link(std::string_view text) {
  EmulatedLink link;
  bool has_latency = false, has_bandwidth = false;
  const auto refuse = [&](std::string_view what) {
    throw InputError(
        {fmt::format("'{}' is not an emulated link", text), std::string(what), "Write alpha=1ms,bandwidth=125MB/s"});
  };
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t comma = std::min(rest.find(','), rest.size()), equals = rest.find('=');
    if (equals >= comma) refuse("a part has no '='");
    const std::string_view name = rest.substr(0, equals), value = rest.substr(equals + 1, comma - equals - 1);
    if (name == "alpha") {
      link.latency = parse_seconds(value), has_latency = true;
    } else if (name == "bandwidth") {
      link.bandwidth = parse_rate(value), has_bandwidth = true;
    } else {
      refuse(fmt::format("'{}' is unknown", name));
    }
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  if (!has_latency || !has_bandwidth) refuse("alpha and bandwidth are both needed");
  if (link.bandwidth.value() <= 0) refuse("the bandwidth is not positive");
  return link;
}

std::unique_ptr<Transport> emulate(std::unique_ptr<Transport> beneath, EmulatedLink link) {
  return std::make_unique<EmulatedTransport>(std::move(beneath), link);
}

}  // namespace annulet::comm
