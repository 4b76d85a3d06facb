#include "annulet/schedule/probes.hpp"

#include <gtest/gtest.h>

#include "annulet/schedule/validator.hpp"
#include "schedule/plans.hpp"

namespace annulet::schedule {
namespace {

const Promise kAnything{[](int rank, Elements) { return Contributions{1} << rank; },
                        [](int, Elements) { return Contributions{0}; }};

PairShape shape(int rank, int messages) { return {rank, 4, 2, 1, 5, messages}; }

TEST(Probes, FitTogetherAndSendWhatTheySay) {
  for (const int k : {1, 2, 7}) {
    const auto there_and_back = plans_of(4, [&](int r) { return ping_pong(shape(r, k)); });
    const auto one_way = plans_of(4, [&](int r) { return stream(shape(r, k)); });
    const auto both = plans_of(4, [&](int r) { return both_ways(shape(r, k)); });
    for (const auto& plans : {there_and_back, one_way, both}) EXPECT_EQ(validate(plans, kAnything), "") << k;
    EXPECT_EQ(sent_by_all(there_and_back), 2 * k * 5);
    EXPECT_EQ(sent_by_all(one_way), k * 5 + 1);
    EXPECT_EQ(sent_by_all(both), 2 * k * 5 + 1);
  }
}

TEST(Probes, LeaveTheOtherRanksAlone) {
  EXPECT_TRUE(ping_pong(shape(0, 3)).steps.empty());
  EXPECT_TRUE(stream(shape(3, 3)).steps.empty());
  EXPECT_TRUE(both_ways(shape(0, 3)).steps.empty());
}

}  // namespace
}  // namespace annulet::schedule
