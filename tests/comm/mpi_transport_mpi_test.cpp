#include "annulet/comm/mpi_transport.hpp"

#include <gmock/gmock.h>

#include <array>
#include <cstdlib>
#include <numeric>
#include <thread>

#include "annulet/base/error.hpp"
#include "annulet/comm/eager_limit.hpp"
#include "annulet/comm/mpi.hpp"

namespace annulet::comm {
namespace {

// Posts one message to the right and one from the left, and waits for both.
std::vector<char> pass_right(Transport& transport, const std::vector<char>& out, int tag) {
  const int p = transport.world(), right = (transport.rank() + 1) % p, left = (transport.rank() + p - 1) % p;
  std::vector<char> in(out.size());
  transport.post_receive({left, tag, Purpose::gradients, 1}, std::as_writable_bytes(std::span(in)));
  transport.post_send({right, tag, Purpose::gradients, 2}, std::as_bytes(std::span(out)));
  std::array<std::uint64_t, 2> tokens{};
  for (std::size_t finished = 0; finished < 2;) finished += transport.poll(tokens);
  return in;
}

std::vector<char> message_of(int rank, std::size_t size) {
  std::vector<char> data(size);
  for (std::size_t i = 0; i < size; ++i)
    data[i] = static_cast<char>((i * 31 + static_cast<std::size_t>(rank) * 7) % 127);
  return data;
}

TEST(MpiTransport, MovesBytesOfAnySizeAcrossTheEagerLimits) {
  const Communicator world = duplicate(MPI_COMM_WORLD);
  const auto transport = make_mpi_transport(world);
  const int left = (world.rank() + world.size() - 1) % world.size();
  std::int64_t total = 0;
  for (const std::size_t size : {0U, 1U, 4U, 4000U, 4096U, 4097U, 65536U, 65537U, 1U << 20}) {
    EXPECT_EQ(pass_right(*transport, message_of(world.rank(), size), 0), message_of(left, size)) << size;
    total += static_cast<std::int64_t>(size);
  }
  EXPECT_EQ(transport->traffic()[Purpose::gradients], Bytes(total));
  EXPECT_EQ(transport->traffic()[Purpose::control], Bytes(0));
  EXPECT_EQ(transport->traffic().posted, 18);
  EXPECT_EQ(transport->traffic().completed, 18);
}

// MPI lets messages move inside its calls only: a rank that looks seldom must not hear of an arrival one look late.
TEST(MpiTransport, OneLookHearsOfWhatHadArrivedBeforeIt) {
  const Communicator world = duplicate(MPI_COMM_WORLD);
  const auto transport = make_mpi_transport(world);
  const int p = world.size(), right = (world.rank() + 1) % p, left = (world.rank() + p - 1) % p;
  const std::array<char, 8> out{};
  std::array<char, 8> in{};
  transport->post_receive({left, 0, Purpose::gradients, 1}, std::as_writable_bytes(std::span(in)));
  world.barrier();
  transport->post_send({right, 0, Purpose::gradients, 2}, std::as_bytes(std::span(out)));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  std::array<std::uint64_t, 2> tokens{};
  EXPECT_EQ(transport->poll(tokens), 2U);
}

TEST(MpiTransport, SplitsMessagesLongerThanAnMpiCount) {
  const Communicator world = duplicate(MPI_COMM_WORLD);
  const auto transport = make_mpi_transport(world, {.pieces = {.most = 7}});
  const int left = (world.rank() + world.size() - 1) % world.size();
  for (const std::size_t size : {0U, 6U, 7U, 8U, 100U}) {
    EXPECT_EQ(pass_right(*transport, message_of(world.rank(), size), 0), message_of(left, size)) << size;
  }
  EXPECT_EQ(transport->traffic().posted, transport->traffic().completed);
}

constexpr Pieces kPieces{.eager = 7, .reach = 60};
constexpr std::size_t kReach = 60;

TEST(MpiTransport, MovesMessagesInEagerPieces) {
  const Communicator world = duplicate(MPI_COMM_WORLD);
  const auto transport = make_mpi_transport(world, {.pieces = kPieces});
  const int left = (world.rank() + world.size() - 1) % world.size();
  for (const std::size_t size : {std::size_t{0}, std::size_t{6}, std::size_t{7}, std::size_t{8}, kReach, kReach + 1}) {
    EXPECT_EQ(pass_right(*transport, message_of(world.rank(), size), 0), message_of(left, size)) << size;
  }
  EXPECT_EQ(transport->traffic().posted, transport->traffic().completed);
}

// What a receive of `expected` bytes says of the message that comes from the left; nothing if it is right.
std::string complaint(Transport& transport, Transport& receiver, std::size_t sent, std::size_t expected, int tag) {
  std::vector<char> in(expected), out(sent);
  const int p = transport.world(), right = (transport.rank() + 1) % p, left = (transport.rank() + p - 1) % p;
  receiver.post_receive({left, tag, Purpose::other, 1}, std::as_writable_bytes(std::span(in)));
  transport.post_send({right, tag, Purpose::other, 2}, std::as_bytes(std::span(out)));
  std::array<std::uint64_t, 2> tokens{};
  try {
    for (bool received = false; !received;) {
      transport.poll(tokens);
      received = receiver.poll(tokens) > 0;
    }
  } catch (const RunError& error) {
    return error.what();
  }
  return "";
}

TEST(MpiTransport, SaysWhenAMessageIsShorterThanItsReceive) {
  const Communicator world = duplicate(MPI_COMM_WORLD);
  const auto transport = make_mpi_transport(world), receiver = make_mpi_transport(world);
  const std::string left = std::to_string((world.rank() + world.size() - 1) % world.size());
  EXPECT_THAT(complaint(*transport, *receiver, 5, 8, 3),
              testing::HasSubstr("received 5 bytes from rank " + left + ", expected 8"));
  world.barrier();
}

// The first piece of ten bytes is as long as that of twenty, the second is not.
TEST(MpiTransport, SaysWhenAMessageInPiecesIsShorterThanItsReceive) {
  const Communicator world = duplicate(MPI_COMM_WORLD);
  const auto transport = make_mpi_transport(world, {.pieces = kPieces});
  EXPECT_THAT(complaint(*transport, *transport, 10, 20, 6), testing::HasSubstr("received 3 bytes"));
  world.barrier();
}

TEST(MpiTransport, CutsShortMessagesByDefaultOnlyWhereThatIsQuicker) {
  const Communicator world = duplicate(MPI_COMM_WORLD);
  const MpiTransportOptions options = options_for_links(world);
  const EagerLimit assumed = assumed_shared_memory_limit();
  if (world.nodes().back() > 0 || std::getenv("OMPI_MCA_btl") != nullptr) GTEST_SKIP() << "not shared memory alone";
  EXPECT_EQ(options.pieces.eager, assumed.bytes.value());
  EXPECT_EQ(options.pieces.reach, kEagerReach.value());
  EXPECT_EQ(assumed.reach(), kEagerReach);
  EXPECT_EQ((EagerLimit{Bytes(100'000), "shared memory", ""}.reach()), Bytes(100'000));
  EXPECT_EQ((EagerLimit{Bytes(1000), "TCP", ""}.reach()), Bytes(1000));
}

// Seen by a receiver that does not expect pieces.
TEST(MpiTransport, CutsMessagesOfAFewEagerPiecesAndNoLongerOnes) {
  const Communicator world = duplicate(MPI_COMM_WORLD);
  const auto transport = make_mpi_transport(world, {.pieces = kPieces}), receiver = make_mpi_transport(world);
  EXPECT_EQ(complaint(*transport, *receiver, kReach + 1, kReach + 1, 4), "");
  EXPECT_THAT(complaint(*transport, *receiver, kReach, kReach, 5), testing::HasSubstr("received 7 bytes"));
  world.barrier();
}

TEST(MpiTransport, OffersTagsBelowTheBoundOfMpi) {
  const Communicator world = duplicate(MPI_COMM_WORLD);
  EXPECT_GE(make_mpi_transport(world)->tag_count(), 32767);
  EXPECT_EQ(make_mpi_transport(world, {.most_tags = 100})->tag_count(), 100);
}

}  // namespace
}  // namespace annulet::comm
