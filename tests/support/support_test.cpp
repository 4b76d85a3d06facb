// The support for MPI tests, tested by itself. The DISABLED_ tests fail on purpose: support_test.sh runs them.
#include <gtest/gtest.h>
#include <mpi.h>

#include <array>
#include <stdexcept>

#include "support/agree.hpp"

namespace annulet::test {
namespace {

int rank_of(MPI_Comm comm) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  return rank;
}

int size_of(MPI_Comm comm) {
  int size = 0;
  MPI_Comm_size(comm, &size);
  return size;
}

TEST(Agreement, NamesTheSameRanksEverywhere) {
  const int last = size_of(MPI_COMM_WORLD) - 1;
  EXPECT_EQ(failing_ranks(rank_of(MPI_COMM_WORLD) != last), std::vector<int>{last});
  EXPECT_TRUE(failing_ranks(true).empty());
  EXPECT_FALSE(on_all_ranks(rank_of(MPI_COMM_WORLD) != last, "x"));
}

TEST(Agreement, LetsAllRanksGoOnTogether) {
  ANNULET_ASSERT_ALL(size_of(MPI_COMM_WORLD) > 0) << "never printed";
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST(Agreement, DISABLED_StopsEveryRankWhenOneFails) {
  ANNULET_ASSERT_ALL(rank_of(MPI_COMM_WORLD) != 1);
  MPI_Barrier(MPI_COMM_WORLD);
  FAIL() << "unreachable";
}

TEST(Agreement, DISABLED_OneRankFailsAlone) { EXPECT_NE(rank_of(MPI_COMM_WORLD), 1) << "on purpose"; }

TEST(Agreement, DISABLED_OneRankThrowsWhileOthersWait) {
  if (rank_of(MPI_COMM_WORLD) == 1) throw std::runtime_error("thrown on purpose");
  MPI_Barrier(MPI_COMM_WORLD);
}

// 1000 doubles and then 3 ints to the right: what support_test.sh expects wire_counter to see.
TEST(WireCounter, DISABLED_SendsAKnownAmount) {
  const int world = size_of(MPI_COMM_WORLD), rank = rank_of(MPI_COMM_WORLD);
  const int right = (rank + 1) % world, left = (rank + world - 1) % world;
  std::array<double, 1000> out{}, in{};
  std::array<MPI_Request, 2> requests{};
  MPI_Irecv(in.data(), 1000, MPI_DOUBLE, left, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(out.data(), 1000, MPI_DOUBLE, right, 0, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
  std::array<int, 3> sent{}, received{};
  MPI_Sendrecv(sent.data(), 3, MPI_INT, right, 1, received.data(), 3, MPI_INT, left, 1, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
}

}  // namespace
}  // namespace annulet::test
