#include "annulet/schedule/sparse_all_gather.hpp"

#include <gtest/gtest.h>

#include "annulet/schedule/validator.hpp"
#include "schedule/plans.hpp"

namespace annulet::schedule {
namespace {

std::vector<Plan> plans_for(const std::vector<Elements>& lengths) {
  return plans_of(static_cast<int>(lengths.size()), [&](int rank) { return sparse_all_gather({rank, lengths}); });
}

std::vector<Elements> lengths_of(int world, int kind) {
  std::vector<Elements> lengths;
  for (int r = 0; r < world; ++r) {
    const Elements kinds[] = {0, 3, r, r % 3 == 1 ? 0 : 5 + r, r == world - 1 ? 40 : 0};
    lengths.push_back(kinds[kind]);
  }
  return lengths;
}

TEST(SparseAllGather, BringsEveryPieceToEveryRankWhateverTheLengths) {
  for (int world = 1; world <= 17; ++world) {
    for (int kind = 0; kind < 5; ++kind) {
      const auto lengths = lengths_of(world, kind);
      const auto plans = plans_for(lengths);
      ASSERT_EQ(validate(plans, gather_promise(lengths)), "") << "p=" << world << " lengths of kind " << kind;
      for (const Plan& plan : plans)
        ASSERT_EQ(sent_elements(plan), sparse_all_gather_sends({plan.rank, lengths})) << "p=" << world;
      ASSERT_EQ(sent_by_all(plans), sparse_all_gather_total(lengths));
    }
  }
}

TEST(SparseAllGather, SendsAllButOneTimesItsPayloadWhereLengthsAreEqual) {
  const std::vector<Elements> lengths(6, 7);
  EXPECT_EQ(sparse_all_gather_sends({2, lengths}), 5 * 7);
  EXPECT_EQ(longest_way(plans_for(lengths)), sparse_all_gather_steps(6));
}

TEST(SparseAllGather, PutsPiecesInRankOrder) {
  const std::vector<Elements> lengths{2, 0, 5};
  EXPECT_EQ(sparse_piece(lengths, 1), (Interval{2, 0}));
  EXPECT_EQ(sparse_piece(lengths, 2), (Interval{2, 5}));
}

}  // namespace
}  // namespace annulet::schedule
