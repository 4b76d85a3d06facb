#include "annulet/comm/communicator.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "annulet/comm/environment.hpp"
#include "annulet/comm/mpi.hpp"

namespace annulet::comm {
namespace {

TEST(Communicator, DuplicatesTheCallersAndKeepsItsRanks) {
  const Communicator copy = duplicate(MPI_COMM_WORLD);
  int relation = 0, rank = 0;
  MPI_Comm_compare(native(copy), MPI_COMM_WORLD, &relation);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  EXPECT_EQ(relation, MPI_CONGRUENT);
  EXPECT_EQ(copy.rank(), rank);
  EXPECT_TRUE(duplicate(MPI_COMM_NULL).is_null());
}

TEST(Communicator, GathersTextsAndBytesOfAnyLength) {
  const Communicator world = duplicate(MPI_COMM_WORLD);
  const auto texts = world.all_gather(std::string(static_cast<std::size_t>(world.rank()), 'x'));
  ASSERT_EQ(texts.size(), static_cast<std::size_t>(world.size()));
  for (std::size_t r = 0; r < texts.size(); ++r) EXPECT_EQ(texts[r], std::string(r, 'x'));

  const std::vector<std::byte> mine(static_cast<std::size_t>(world.rank() * 3), std::byte{7});
  const auto parts = world.gather(mine, 0);
  EXPECT_EQ(parts.size(), world.rank() == 0 ? static_cast<std::size_t>(world.size()) : 0U);
  for (std::size_t r = 0; r < parts.size(); ++r) EXPECT_EQ(parts[r], std::vector<std::byte>(r * 3, std::byte{7}));
}

TEST(Communicator, ReducesAndBroadcasts) {
  const Communicator world = duplicate(MPI_COMM_WORLD);
  const int p = world.size();
  EXPECT_EQ(world.sum(world.rank()), p * (p - 1) / 2);
  EXPECT_EQ(world.maximum(world.rank()), p - 1);
  EXPECT_EQ(world.minimum(world.rank() + 5), 5);
  EXPECT_EQ(world.broadcast(world.rank() == p - 1 ? "last" : "", p - 1), "last");
}

TEST(Communicator, FindsTheRanksOfThisNode) {
  const Communicator world = duplicate(MPI_COMM_WORLD);
  std::vector<int> all(static_cast<std::size_t>(world.size()));
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(world.node_ranks(), all);  // the tests run on one
  EXPECT_EQ(world.nodes(), std::vector<int>(all.size(), 0));
}

TEST(Environment, LeavesAnMpiThatSomebodyElseInitialised) {
  {
    const Environment environment;
    EXPECT_EQ(environment.thread_level(), ThreadLevel::multiple);
    EXPECT_NE(environment.library(), "");
  }
  int finalized = 1;
  MPI_Finalized(&finalized);
  EXPECT_EQ(finalized, 0);
}

TEST(Environment, RefusesAnotherNumberOfRanksThanExpected) { EXPECT_THROW(Environment(1000), std::runtime_error); }

}  // namespace
}  // namespace annulet::comm
