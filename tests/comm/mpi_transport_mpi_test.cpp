#include "annulet/comm/mpi_transport.hpp"

#include <gmock/gmock.h>

#include <array>
#include <numeric>
#include <thread>

#include "annulet/base/error.hpp"
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
  const auto transport = make_mpi_transport(world, {.most_bytes = 7});
  const int left = (world.rank() + world.size() - 1) % world.size();
  for (const std::size_t size : {0U, 6U, 7U, 8U, 100U}) {
    EXPECT_EQ(pass_right(*transport, message_of(world.rank(), size), 0), message_of(left, size)) << size;
  }
  EXPECT_EQ(transport->traffic().posted, transport->traffic().completed);
}

TEST(MpiTransport, SaysWhenAMessageIsShorterThanItsReceive) {
  const Communicator world = duplicate(MPI_COMM_WORLD);
  const auto transport = make_mpi_transport(world);
  std::vector<char> in(8), out(5);
  const int p = world.size(), right = (world.rank() + 1) % p, left = (world.rank() + p - 1) % p;
  transport->post_receive({left, 3, Purpose::other, 1}, std::as_writable_bytes(std::span(in)));
  transport->post_send({right, 3, Purpose::other, 2}, std::as_bytes(std::span(out)));
  std::string message;
  std::array<std::uint64_t, 2> tokens{};
  for (std::size_t finished = 0; finished < 2 && message.empty();) {
    try {
      finished += transport->poll(tokens);
    } catch (const RunError& error) {
      message = error.what();
    }
  }
  EXPECT_THAT(message, testing::HasSubstr("received 5 bytes from rank " + std::to_string(left) + ", expected 8"));
  world.barrier();
}

TEST(MpiTransport, OffersTagsBelowTheBoundOfMpi) {
  const Communicator world = duplicate(MPI_COMM_WORLD);
  EXPECT_GE(make_mpi_transport(world)->tag_count(), 32767);
  EXPECT_EQ(make_mpi_transport(world, {.most_tags = 100})->tag_count(), 100);
}

}  // namespace
}  // namespace annulet::comm
