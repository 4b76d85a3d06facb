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
    const Instant arrival = port_free_ + std::chrono::duration_cast<Clock::duration>(link_.latency);
    notices_.push_back({arrival, {envelope.peer, 2 * envelope.tag + 1, envelope.purpose, message}});
  }

  void post_receive(const Envelope& envelope, std::span<std::byte> bytes) override {
    const std::uint64_t message = open(envelope.token);
    beneath_->post_receive({envelope.peer, 2 * envelope.tag, envelope.purpose, message}, bytes);
    beneath_->post_receive({envelope.peer, 2 * envelope.tag + 1, envelope.purpose, message}, {});
  }

  std::size_t poll(std::span<std::uint64_t> finished) override {
    const Instant now = Clock::now();
    while (!notices_.empty() && notices_.front().due <= now) {
      beneath_->post_send(notices_.front().envelope, {});
      notices_.pop_front();
    }
    std::array<std::uint64_t, 32> parts{};
    const std::size_t most = std::min(parts.size(), finished.size());
    const std::size_t count = beneath_->poll(std::span(parts).first(most));
    std::size_t whole = 0;
    for (std::size_t i = 0; i < count; ++i) {
      Message& message = messages_[static_cast<std::size_t>(parts[i])];
      if (--message.parts > 0) continue;
      finished[whole++] = message.token;
      free_.push_back(parts[i]);
    }
    traffic_.completed += static_cast<std::int64_t>(whole);
    return whole;
  }

  Instant next_event() const override {
    return notices_.empty() ? beneath_->next_event() : std::min(notices_.front().due, beneath_->next_event());
  }

 private:
  struct Message {
    std::uint64_t token;
    int parts;  // the bytes and the notice
  };
  struct Notice {
    Instant due;
    Envelope envelope;
  };

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
  std::deque<Notice> notices_;  // in the order of arrival: one queue, one latency
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
