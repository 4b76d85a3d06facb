#include "annulet/report/closing_table.hpp"

#include <gmock/gmock.h>

#include "report/example.hpp"

namespace annulet::report {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

TEST(ClosingTable, SetsMeasuredBesidePredictedPerBucketAndForTheStep) {
  const std::string table = closing_table(example::summary(), example::buckets(), example::steps());
  EXPECT_THAT(table, ContainsRegex("bucket +payload +wire +p50 +p99 +predicted +residual"));
  EXPECT_THAT(table, ContainsRegex("\n +1 +1 kB +500 B +2.000 +2.000 +1.000 +\\+100.0 %"));
  EXPECT_THAT(table, ContainsRegex("\n +step +4 kB +2 kB +4.000 +4.000 +5.000 +-20.0 %"));
  EXPECT_THAT(table, HasSubstr("8000 counted = 8000 planned; control 80"));
  EXPECT_THAT(table,
              HasSubstr("= 2.000 + 4.000 + 1.000 + 0.500 ms (medians of rank 0; data 0.100, whole step 7.700 ms)"));
  EXPECT_THAT(
      table,
      HasSubstr("hidden behind computation: 75 %; MFU 25.0 % of 400 GFLOP/s (FMA), large products reach 75.0 %"));
}

TEST(ClosingTable, SaysWhichCollectiveTheStepWaitedFor) {
  train::Summary summary = example::summary();
  EXPECT_THAT(closing_table(summary, example::buckets(), example::steps()),
              HasSubstr("exposed: all-reduce of gradients 0.800, control record 0.200 ms\n"));
  summary.zero = 3;
  EXPECT_THAT(
      closing_table(summary, example::buckets(), example::steps()),
      HasSubstr("exposed: reduce-scatter of gradients 0.800, all-gather of weights 0.100, control record 0.200 ms"));
}

TEST(ClosingTable, ShowsWhatItTakesInMemory) {
  EXPECT_THAT(closing_table(example::summary(), example::buckets(), example::steps()),
              ContainsRegex("= model states +6 kB +6 kB\n"));
}

TEST(ClosingTable, ShowsWhatRecomputingAdds) {
  train::Summary summary = example::summary();
  summary.hfu = 0.31;
  EXPECT_THAT(closing_table(summary, example::buckets(), example::steps()),
              HasSubstr("MFU 25.0 %, HFU 31.0 %, of 400 GFLOP/s (FMA)"));
}

TEST(ClosingTable, LeavesTheFirstSampledStepsOutOfTheBucketsToo) {
  auto buckets = example::buckets();
  auto warm_up = buckets[0];
  warm_up.step = 0, warm_up.measured = Seconds(1);
  buckets.insert(buckets.begin(), warm_up);
  EXPECT_THAT(closing_table(example::summary(), buckets, example::steps()), Not(HasSubstr("1000.000")));
}

TEST(ClosingTable, OneRankHasNoCommunicationToShow) {
  train::Summary alone = example::summary();
  alone.ranks = 1;
  EXPECT_THAT(closing_table(alone, {}, example::steps()), Not(HasSubstr("residual")));
}

TEST(ClosingTable, SaysSoWhenNoStepWasMade) { EXPECT_THAT(closing_table({}, {}, {}), HasSubstr("no steps were made")); }

}  // namespace
}  // namespace annulet::report
