#include "annulet/collectives/operation.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "annulet/comm/in_process.hpp"
#include "annulet/schedule/out_of_place.hpp"
#include "annulet/schedule/ring.hpp"

namespace annulet::collectives {
namespace {

// Remembers what is posted; nothing ever finishes by itself.
class Recorder final : public comm::Transport {
 public:
  int rank() const override { return 0; }
  int world() const override { return 2; }
  int tag_count() const override { return 8; }
  void post_send(const comm::Envelope& envelope, std::span<const std::byte>) override { sends.push_back(envelope); }
  void post_receive(const comm::Envelope& envelope, std::span<std::byte>) override { receives.push_back(envelope); }
  std::size_t poll(std::span<std::uint64_t>) override { return 0; }
  const comm::Traffic& traffic() const override { return traffic_; }

  std::vector<comm::Envelope> sends, receives;

 private:
  comm::Traffic traffic_;
};

struct Fixture {
  explicit Fixture(Elements elements, Elements segment, int slots) : data(static_cast<std::size_t>(elements)) {
    operation = std::make_unique<Operation>(
        OperationSpec{"test", comm::Purpose::gradients, sum_of<float>(),
                      std::make_shared<schedule::Plan>(schedule::ring_all_reduce({0, 2, elements, segment, slots})),
                      std::as_writable_bytes(std::span(data))});
    scratch.resize(operation->scratch_bytes());
    operation->start(5, 1000, scratch);
  }
  std::vector<float> data;
  std::vector<std::byte> scratch;
  std::unique_ptr<Operation> operation;
  Recorder transport;
};

// Two segments per chunk; steps 0 to 5 are send, receive and combine of each, 6 and 8 the sends of the all-gather.
TEST(Operation, PostsSendsInPlanOrderThoughALaterOneIsReadyFirst) {
  Fixture f(16, 4, 2);
  f.operation->advance(f.transport);
  ASSERT_EQ(f.transport.sends.size(), 2u);
  EXPECT_EQ(f.transport.sends[0].tag, 5);
  f.operation->finish_step(3), f.operation->finish_step(4);  // the second segment is through first
  f.operation->advance(f.transport);
  EXPECT_EQ(f.transport.sends.size(), 2u);
  f.operation->finish_step(0), f.operation->finish_step(1);
  f.operation->advance(f.transport);
  ASSERT_EQ(f.transport.sends.size(), 4u);
  EXPECT_EQ(f.transport.sends[2].token, 1006u);
  EXPECT_EQ(f.transport.sends[3].token, 1008u);
  EXPECT_FALSE(f.operation->done());
}

TEST(Operation, ForwardsASegmentAsSoonAsItIsReducedAndItsPredecessorTaken) {
  Fixture f(16, 2, 4);  // four segments per chunk
  f.operation->advance(f.transport);
  const std::size_t before = f.transport.sends.size();
  ASSERT_EQ(before, 4u);
  f.operation->finish_step(static_cast<schedule::StepId>(f.transport.receives[0].token - 1000));
  f.operation->advance(f.transport);
  EXPECT_EQ(f.transport.sends.size(), before);  // the right neighbour has not even taken what was sent before
  f.operation->finish_step(static_cast<schedule::StepId>(f.transport.sends[0].token - 1000));
  f.operation->advance(f.transport);
  EXPECT_EQ(f.transport.sends.size(), before + 1);  // the others are still on their way
}

TEST(Operation, BoundsTheMessagesInFlight) {
  Fixture f(100000, 1, 64);
  f.operation->advance(f.transport);
  EXPECT_LE(f.transport.sends.size(), 32u);
  EXPECT_LE(f.transport.receives.size(), 32u);
}

TEST(Operation, DoesNotReceiveOverWhatIsStillBeingSent) {
  Fixture f(8, 4, 1);
  f.operation->advance(f.transport);
  f.operation->finish_step(1);  // reduce-scatter's segment has come; its send is still out
  f.operation->advance(f.transport);
  EXPECT_EQ(f.transport.receives.size(), 1u);
  f.operation->finish_step(0);
  f.operation->advance(f.transport);
  EXPECT_EQ(f.transport.receives.size(), 2u);
}

TEST(Operation, ReadsAnInputThatIsApartFromItsDataOrTheSameButNoneThatOverlaps) {
  std::vector<float> memory(12);
  const auto spec = [&](std::size_t first, std::size_t count) {
    const schedule::Plan plan = schedule::ring_all_reduce({0, 2, 4, 2, 2});
    return OperationSpec{"test",
                         comm::Purpose::other,
                         sum_of<float>(),
                         std::make_shared<schedule::Plan>(schedule::out_of_place(plan, {0, 4})),
                         std::as_writable_bytes(std::span(memory).subspan(4, 4)),
                         {},
                         std::as_bytes(std::span(memory).subspan(first, count))};
  };
  for (const std::size_t first : {0U, 4U, 8U}) EXPECT_NO_THROW(Operation{spec(first, 4)}) << first;
  for (const std::size_t first : {1U, 3U, 5U, 7U}) EXPECT_THROW(Operation{spec(first, 4)}, ContractError) << first;
  EXPECT_THROW(Operation{spec(0, 3)}, ContractError);
}

}  // namespace
}  // namespace annulet::collectives
