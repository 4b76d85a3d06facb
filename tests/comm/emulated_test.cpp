#include "annulet/comm/emulated.hpp"

#include <gmock/gmock.h>

#include <array>
#include <thread>
#include <vector>

#include "annulet/base/error.hpp"
#include "annulet/comm/in_process.hpp"

namespace annulet::comm {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

std::span<const std::byte> bytes(const std::vector<char>& data) { return std::as_bytes(std::span(data)); }
std::span<std::byte> bytes(std::vector<char>& data) { return std::as_writable_bytes(std::span(data)); }

struct Pair {
  explicit Pair(EmulatedLink link)
      : sender(emulate(network.connect(0), link)), receiver(emulate(network.connect(1), link)) {}

  // Polls both until `count` messages have arrived; returns when each of them did.
  std::vector<Instant> arrivals(std::size_t count) {
    std::vector<Instant> times;
    std::array<std::uint64_t, 8> tokens{};
    while (times.size() < count) {
      sender->poll(tokens);
      for (std::size_t n = receiver->poll(tokens); n > 0; --n) times.push_back(Clock::now());
    }
    return times;
  }

  InProcessNetwork network{2};
  std::unique_ptr<Transport> sender, receiver;
};

TEST(EmulatedLink, AMessageArrivesAfterLatencyAndBytesOverBandwidth) {
  Pair pair({Seconds(3e-3), ByteRate(1e6)});
  std::vector<char> out(4000, 'x'), in(4000);
  const Instant begin = Clock::now();
  pair.receiver->post_receive({0, 0, Purpose::other, 1}, bytes(in));
  pair.sender->post_send({1, 0, Purpose::other, 2}, bytes(std::as_const(out)));
  EXPECT_GE(Seconds(pair.arrivals(1)[0] - begin).count(), 3e-3 + 4e-3);
  EXPECT_EQ(in, out);
}

TEST(EmulatedLink, SendsOfARankQueueBehindEachOtherButShareTheLatency) {
  Pair pair({Seconds(20e-3), ByteRate(1e6)});
  std::vector<std::vector<char>> out(3, std::vector<char>(5000, 'y')), in(3, std::vector<char>(5000));
  const Instant begin = Clock::now();
  for (std::size_t i = 0; i < 3; ++i) {
    pair.receiver->post_receive({0, 0, Purpose::other, i}, bytes(in[i]));
    pair.sender->post_send({1, 0, Purpose::other, i}, bytes(std::as_const(out[i])));
  }
  const auto times = pair.arrivals(3);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_GE(Seconds(times[i] - begin).count(), 20e-3 + 5e-3 * static_cast<double>(i + 1));
  }
}

TEST(EmulatedLink, KnowsWhenSomethingHappensNextSoThatNobodySpins) {
  Pair pair({Seconds(1), ByteRate(1e9)});
  EXPECT_EQ(pair.sender->next_event(), Instant::max());
  const std::vector<char> out(10, 'z');
  const Instant before = Clock::now();
  pair.sender->post_send({1, 0, Purpose::other, 1}, bytes(out));
  EXPECT_LE(pair.sender->next_event(), Clock::now() + std::chrono::milliseconds(1));  // it leaves
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::array<std::uint64_t, 8> tokens{};
  pair.sender->poll(tokens);
  EXPECT_GE(pair.sender->next_event(), before + std::chrono::milliseconds(999));  // it arrives
}

TEST(EmulatedLink, ASendFinishesWhenItHasLeftThoughItIsStillUnderWay) {
  Pair pair({Seconds(10), ByteRate(1e6)});
  std::vector<char> out(2000, 'x'), in(2000);
  pair.receiver->post_receive({0, 3, Purpose::other, 1}, bytes(in));
  const Instant begin = Clock::now();
  pair.sender->post_send({1, 3, Purpose::other, 2}, bytes(std::as_const(out)));
  std::array<std::uint64_t, 8> tokens{};
  while (pair.sender->poll(tokens) == 0) {
  }
  EXPECT_EQ(tokens[0], 2U);
  EXPECT_GE(Seconds(Clock::now() - begin).count(), 2e-3);
  EXPECT_LT(Seconds(Clock::now() - begin).count(), 9.0);
  EXPECT_FALSE(pair.sender->has_arrived(3));
  EXPECT_TRUE(pair.sender->has_arrived(4));
  EXPECT_EQ(pair.receiver->poll(tokens), 0U);
}

TEST(EmulatedLink, IsReadAsPeopleWriteIt) {
  const EmulatedLink link = parse_emulated_link("alpha=1ms,bandwidth=125MB/s");
  EXPECT_DOUBLE_EQ(link.latency.count(), 1e-3);
  EXPECT_DOUBLE_EQ(link.bandwidth.value(), 125e6);
  EXPECT_THAT([] { parse_emulated_link("alpha=1ms"); }, ThrowsMessage<InputError>(HasSubstr("both needed")));
  EXPECT_THAT([] { parse_emulated_link("alpha=1ms,bandwidth=0MB/s"); },
              ThrowsMessage<InputError>(HasSubstr("not positive")));
  EXPECT_THAT([] { parse_emulated_link("beta=1"); }, ThrowsMessage<InputError>(HasSubstr("'beta' is unknown")));
  EXPECT_THAT([] { parse_emulated_link("fast"); }, ThrowsMessage<InputError>(HasSubstr("alpha=1ms,bandwidth=125MB/s")));
}

TEST(InProcessTransport, RefusesAMessageOfAnotherSizeThanItsReceive) {
  InProcessNetwork network(2);
  const auto a = network.connect(0), b = network.connect(1);
  std::vector<char> in(4);
  const std::vector<char> out(3);
  b->post_receive({0, 0, Purpose::other, 1}, bytes(in));
  EXPECT_THAT(
      [&] {
        a->post_send({1, 0, Purpose::other, 2}, bytes(out));
      },
      ThrowsMessage<RunError>(HasSubstr("received 3 bytes from rank 0, expected 4")));
}

}  // namespace
}  // namespace annulet::comm
