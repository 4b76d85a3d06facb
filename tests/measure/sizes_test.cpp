#include "measure/sizes.hpp"

#include <gmock/gmock.h>

#include <algorithm>

namespace annulet::measure {
namespace {

using testing::ElementsAre;

constexpr Bytes kSmallest{1 << 10}, kLargest{8 << 20};

// The sizes chosen where bytes take alpha + bytes * beta and every round counts against the budget.
struct Walk {
  std::vector<Bytes> sizes;
  std::vector<int> rounds;
  Seconds spent{0};
};

Walk walk(double alpha, double beta, Seconds budget, int sizes) {
  const std::vector<Bytes> ladder = size_ladder(kSmallest, kLargest, 2);
  std::vector<cost::RingPoint> measured;
  Walk result;
  std::optional<std::size_t> rung = 0;
  while (rung) {
    const Bytes bytes = ladder[*rung];
    const int to_come = sizes - static_cast<int>(measured.size());
    measured.push_back({bytes, 2, 1 << 16, 4, Seconds(alpha + bytes.as_double() * beta)});
    result.sizes.push_back(bytes);
    result.rounds.push_back(static_cast<int>(
        std::clamp((budget - result.spent) / to_come / measured.back().time, double{kFewestRounds}, 15.0)));
    result.spent += result.rounds.back() * measured.back().time;
    rung = next_size(ladder, sizes, measured, budget, budget - result.spent);
  }
  return result;
}

TEST(SizeLadder, DoublesUpToTheLargest) {
  EXPECT_THAT(size_ladder(Bytes(1024), Bytes(5000), 2),
              ElementsAre(Bytes(1024), Bytes(2048), Bytes(4096), Bytes(5000)));
}

TEST(SizeLadder, HoldsWholeFloatsAndOneForEachRank) {
  EXPECT_THAT(size_ladder(Bytes(1), Bytes(43), 4), ElementsAre(Bytes(16), Bytes(32), Bytes(40)));
}

TEST(SizeLadder, HasTwoSizesEvenIfTheLargestIsTiny) {
  EXPECT_THAT(size_ladder(Bytes(1024), Bytes(8), 2), ElementsAre(Bytes(1024), Bytes(2048)));
}

TEST(NextSize, SpreadsTheSizesOverTheLadderOfAFastLink) {
  const Walk fast = walk(10e-6, 1e-10, Seconds(0.3), 5);
  EXPECT_THAT(fast.sizes,
              ElementsAre(Bytes(1 << 10), Bytes(8 << 10), Bytes(64 << 10), Bytes(512 << 10), Bytes(8 << 20)));
  EXPECT_GE(fast.rounds.back(), 5);
}

TEST(NextSize, ShrinksOnASlowLinkSoThatTheBudgetHolds) {
  const Walk slow = walk(6e-3, 5e-8, Seconds(0.3), 5);
  EXPECT_GE(slow.sizes.size(), 3U);
  EXPECT_LT(slow.sizes.back(), kLargest);
  EXPECT_LE(slow.spent, Seconds(0.3));
}

TEST(NextSize, MeasuresTwoSizesWhateverTheyTake) {
  const Walk crawling = walk(1.0, 1e-6, Seconds(0.3), 5);
  EXPECT_EQ(crawling.sizes.size(), 2U);
  EXPECT_THAT(crawling.rounds, ElementsAre(kFewestRounds, kFewestRounds));
}

TEST(NextSize, ExceedsTheBudgetUntilTheBandwidthShows) {
  const Walk far = walk(30e-3, 1e-8, Seconds(0.15), 5);
  EXPECT_GE(far.sizes.size(), 4U);
  EXPECT_GT(far.spent, Seconds(0.15));
  EXPECT_LE(far.spent, Seconds(0.6));
}

TEST(NextSize, EndsAtTheTopOfTheLadder) {
  EXPECT_EQ(walk(1e-6, 1e-10, Seconds(10), 100).sizes.size(), size_ladder(kSmallest, kLargest, 2).size());
}

}  // namespace
}  // namespace annulet::measure
