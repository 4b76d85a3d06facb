#include "annulet/schedule/micro_shards.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace annulet::schedule {
namespace {

// [S][p - 1] what each rank owns.
const std::vector<std::vector<std::vector<Interval>>>& all_divisions() {
  static const auto divisions = [] {
    std::vector<std::vector<std::vector<Interval>>> all(1);
    for (int shards = 1; shards <= kMostMicroShards; ++shards) {
      all.emplace_back();
      for (int world = 1; world <= shards; ++world) all.back().push_back(owned_micro_shards(shards, world));
    }
    return all;
  }();
  return divisions;
}

// check(S, p, owned) for every number of ranks that S allows.
template <class Check>
void for_every_division(Check check) {
  for (int shards = 1; shards <= kMostMicroShards; ++shards) {
    for (int world = 1; world <= shards; ++world) {
      SCOPED_TRACE(testing::Message() << "S=" << shards << " p=" << world);
      check(shards, world, all_divisions()[static_cast<std::size_t>(shards)][static_cast<std::size_t>(world - 1)]);
    }
  }
}

int pieces_of_all(int micro_shards, const std::vector<Interval>& owned) {
  std::size_t count = 0;
  for (const Interval part : owned) count += pieces_of(micro_shards, part).size();
  return static_cast<int>(count);
}

TEST(MicroShards, FallIntoTheLargestSubtreesOfTheirOwner) {
  using Pieces = std::vector<Interval>;
  EXPECT_EQ(pieces_of(8, {0, 8}), (Pieces{{0, 8}}));
  EXPECT_EQ(pieces_of(8, {2, 2}), (Pieces{{2, 2}}));
  EXPECT_EQ(pieces_of(8, {1, 6}), (Pieces{{1, 1}, {2, 2}, {4, 2}, {6, 1}}));
  EXPECT_EQ(pieces_of(7, {4, 3}), (Pieces{{4, 3}}));
}

TEST(MicroShards, AreOwnedOnceEachByConsecutiveRanks) {
  for_every_division([](int shards, int world, const std::vector<Interval>& owned) {
    ASSERT_EQ(std::ssize(owned), world);
    Elements next = 0;
    for (const Interval part : owned) {
      ASSERT_EQ(part.first, next);
      ASSERT_GE(part.count, 1);
      next = part.end();
    }
    ASSERT_EQ(next, shards);
  });
}

TEST(MicroShards, OfARankAreOnePieceWhereSOverPIsAPowerOfTwo) {
  for_every_division([](int shards, int world, const std::vector<Interval>& owned) {
    const int each = shards / world;
    if (shards % world != 0 || (each & (each - 1)) != 0) return;
    EXPECT_EQ(pieces_of_all(shards, owned), world);
  });
}

TEST(MicroShards, AreDividedInTwoPiecesARankOnAverageAtMost) {
  for_every_division([](int shards, int world, const std::vector<Interval>& owned) {
    EXPECT_LE(pieces_of_all(shards, owned), 2 * world);
  });
}

TEST(MicroShards, AreDividedEvenly) {
  std::set<int> uneven;  // S where some world has a rank with more than ceil(S / p)
  for_every_division([&](int shards, int world, const std::vector<Interval>& owned) {
    const Elements most = std::ranges::max_element(owned, {}, &Interval::count)->count,
                   even = (shards + world - 1) / world;
    EXPECT_LE(most, std::max<Elements>(even + 1, even + even / 4));
    if (most > even) uneven.insert(shards);
  });
  for (const int shards : {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 16, 17, 23}) EXPECT_FALSE(uneven.contains(shards));
}

TEST(MicroShards, AreSummedInOnePassForEachPiece) {
  const std::vector<Interval> pieces{{3, 1}, {4, 4}};
  EXPECT_EQ(sum_passes(pieces, 4), (std::vector<SumPass>{{{3, 1}, 0, 0}, {{4, 4}, 1, 0}}));
}

TEST(MicroShards, AreSummedInMorePassesAsTheTreeHasIt) {
  const std::vector<Interval> pieces{{0, 4}, {4, 1}};
  const std::vector<SumPass> by_twos{{{0, 2}, 0, 0}, {{2, 2}, 1, 1}, {{4, 1}, 1, 0}};
  EXPECT_EQ(sum_passes(pieces, 2), by_twos);
  const auto one_by_one = sum_passes(pieces, 1);
  EXPECT_EQ(one_by_one,
            (std::vector<SumPass>{{{0, 1}, 0, 0}, {{1, 1}, 1, 1}, {{2, 1}, 1, 0}, {{3, 1}, 2, 2}, {{4, 1}, 1, 0}}));
}

TEST(MicroShards, OfARankAreAddedUpInSlots) {
  const RankSums whole = rank_sums({8, 2, 1, 1}), by_ones = rank_sums({8, 2, 1, 4});
  EXPECT_EQ(whole.owned, (Interval{4, 4}));
  EXPECT_EQ(whole.passes, (std::vector<SumPass>{{{4, 4}, 0, 0}}));
  EXPECT_EQ(whole.slots, 1);
  EXPECT_EQ(by_ones.passes.size(), 4U);
  EXPECT_EQ(by_ones.slots, 3);
}

}  // namespace
}  // namespace annulet::schedule
