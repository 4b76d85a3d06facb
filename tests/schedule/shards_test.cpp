#include "annulet/schedule/shards.hpp"

#include <gtest/gtest.h>

#include "annulet/base/error.hpp"
#include "annulet/schedule/zero.hpp"

namespace annulet::schedule {
namespace {

// 3 parameters, a tensor of size 0 in the middle and at the end, one tensor larger than all others.
const std::vector<std::vector<Elements>> kModels{{3}, {1, 0, 2}, {1, 2, 0}, {5, 1000, 3, 7}, {64, 64, 64}, {0}, {}};

TEST(Shards, OverTheRanksCoverEveryParameterOnce) {
  for (const auto& sizes : kModels) {
    const std::vector<Bucket> buckets = plan_buckets(sizes, {4, 100});
    Elements parameters = 0;
    for (const Elements size : sizes) parameters += size;
    for (int world = 1; world <= 9; ++world) {
      std::vector<int> owners(static_cast<std::size_t>(parameters));
      for (int rank = 0; rank < world; ++rank) {
        const std::vector<Interval> owned = shard(buckets, world, rank);
        ASSERT_EQ(owned.size(), buckets.size());
        for (std::size_t b = 0; b < buckets.size(); ++b) {
          EXPECT_GE(owned[b].first, buckets[b].elements.first);
          EXPECT_LE(owned[b].end(), buckets[b].elements.end());
          for (Elements i = owned[b].first; i < owned[b].end(); ++i) ++owners[static_cast<std::size_t>(i)];
        }
        EXPECT_LE(total_count(owned), parameters / world + static_cast<Elements>(buckets.size()));
      }
      for (const int count : owners) EXPECT_EQ(count, 1);
    }
  }
}

TEST(LayerBuckets, HoldTheTensorsOfALayer) {
  const std::vector<Elements> sizes{3, 0, 5, 7};
  const std::vector<std::size_t> layers{0, 0, 1, 2};
  const std::vector<Bucket> buckets = layer_buckets(sizes, layers);
  ASSERT_EQ(buckets.size(), 3U);
  EXPECT_EQ(buckets[0].elements, (Interval{0, 3}));
  EXPECT_EQ(buckets[0].end_tensor, 2U);
  EXPECT_EQ(buckets[1].elements, (Interval{3, 5}));
  EXPECT_EQ(buckets[2].elements, (Interval{8, 7}));
  EXPECT_THROW(layer_buckets(sizes, std::vector<std::size_t>{0, 2, 2, 2}), ContractError);
}

// The formulas are what the plans send.
TEST(ZeroTraffic, IsWhatThePlansOfAllRanksSend) {
  const SyncOptions options{Bytes(400), Bytes(100), Bytes(64), 2};
  const std::vector<Elements> sizes{10, 0, 30, 100, 3};
  for (const int world : {1, 2, 3, 5}) {
    Elements reduced = 0, scattered = 0, gathered = 0, parameters = 0;
    for (const Bucket& bucket : gradient_buckets(sizes, Bytes(4), options)) {
      parameters += bucket.elements.count;
      for (int rank = 0; rank < world; ++rank) {
        const auto sent = [&](Collective collective) {
          return sent_elements(bucket_plan(collective, rank, world, bucket.elements.count, Bytes(4), options));
        };
        reduced += sent(Collective::all_reduce);
        scattered += sent(Collective::reduce_scatter), gathered += sent(Collective::all_gather);
      }
    }
    EXPECT_EQ(zero_traffic(0, parameters, world, 3).total(), reduced);
    EXPECT_EQ(zero_traffic(1, parameters, world, 3).total(), scattered + gathered);
    EXPECT_EQ(zero_traffic(2, parameters, world, 3).total(), 3 * scattered + gathered);
    EXPECT_EQ(zero_traffic(3, parameters, world, 3).total(), 3 * (scattered + 2 * gathered));
  }
}

TEST(ZeroHeld, IsOnceOverAllRanksFromTheStageOnThatShardsIt) {
  const auto total = [](int stage) {
    const ZeroHeld held = zero_held(stage, 1'000'000, 4);
    return held.weights + held.gradients + 2 * held.optimizer;
  };
  EXPECT_EQ(total(0), 16'000'000);
  EXPECT_EQ(total(1), 10'000'000);
  EXPECT_EQ(total(2), 7'000'000);
  EXPECT_EQ(total(3), 4'000'000);
  EXPECT_THROW(zero_held(4, 1, 1), ContractError);
}

}  // namespace
}  // namespace annulet::schedule
