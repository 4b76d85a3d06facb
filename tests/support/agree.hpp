#pragma once
// Fatal assertions under MPI. A rank that leaves a test alone leaves the others waiting in their next collective, so
// the condition is first agreed (one MPI_Allgather over MPI_COMM_WORLD): either every rank goes on or none does.
//   ANNULET_ASSERT_ALL(chunk.size() == 3) << "more text";    every rank calls it, in the same order
#include <gtest/gtest.h>
#include <mpi.h>

#include <string>
#include <vector>

namespace annulet::test {

// The ranks on which `ok` is false, the same list on every rank.
inline std::vector<int> failing_ranks(bool ok) {
  int world = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &world);
  const int mine = ok ? 0 : 1;
  std::vector<int> failed(static_cast<std::size_t>(world)), ranks;
  MPI_Allgather(&mine, 1, MPI_INT, failed.data(), 1, MPI_INT, MPI_COMM_WORLD);
  for (int rank = 0; rank < world; ++rank) {
    if (failed[static_cast<std::size_t>(rank)] != 0) ranks.push_back(rank);
  }
  return ranks;
}

inline std::string rank_list(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank" : "ranks";
  for (const int rank : ranks) text += ' ' + std::to_string(rank);
  return text;
}

inline testing::AssertionResult on_all_ranks(bool ok, const char* condition) {
  const std::vector<int> failed = failing_ranks(ok);
  if (failed.empty()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << condition << " does not hold on " << rank_list(failed);
}

}  // namespace annulet::test

#define ANNULET_ASSERT_ALL(condition) \
  ASSERT_TRUE(::annulet::test::on_all_ranks(static_cast<bool>(condition), #condition))
