#include "annulet/schedule/buckets.hpp"

#include <gtest/gtest.h>

namespace annulet::schedule {
namespace {

TEST(Buckets, FollowTheOrderOfBackwardAndCloseBeforeTheCap) {
  const std::vector<Elements> sizes{10, 100, 50, 1000, 40, 60, 1};
  const auto buckets = plan_buckets(sizes, {.first = 120, .rest = 100});
  ASSERT_EQ(buckets.size(), 5u);
  EXPECT_EQ(buckets[0].elements, (Interval{0, 110}));  // 50 more would pass the first cap
  EXPECT_EQ(buckets[1].elements, (Interval{110, 50}));
  EXPECT_EQ(buckets[2].elements, (Interval{160, 1000}));  // larger than the cap: alone
  EXPECT_EQ(buckets[3].elements, (Interval{1160, 100}));
  EXPECT_EQ(buckets[4].elements, (Interval{1260, 1}));
  EXPECT_EQ(buckets[4].first_tensor, 6u);
  EXPECT_EQ(buckets[4].end_tensor, 7u);
}

TEST(Buckets, CoverEveryTensorOnceTensorsOfSizeZeroIncluded) {
  const std::vector<Elements> sizes{0, 3, 0, 4, 0};
  std::size_t next = 0;
  for (const Bucket& bucket : plan_buckets(sizes, {1, 1})) {
    EXPECT_EQ(bucket.first_tensor, next);
    next = bucket.end_tensor;
  }
  EXPECT_EQ(next, sizes.size());
  EXPECT_TRUE(plan_buckets({}, {1, 1}).empty());
}

}  // namespace
}  // namespace annulet::schedule
