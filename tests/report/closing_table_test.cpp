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

// 1000 floats; 63 of them with their positions. 2 x 4000 / 504 = 15.87.
TEST(ClosingTable, SaysWhatCompressionSavedAndUpToHowManyRanksItPays) {
  train::Summary summary = example::summary();
  summary.compress = "topk:16", summary.payload = Bytes(504), summary.dense_payload = Bytes(4000);
  summary.wire_per_step = summary.planned_wire_per_step = Bytes(1008), summary.dense_wire_per_step = Bytes(8000);
  summary.median_pack = Seconds(0.0012), summary.median_unpack = Seconds(0.0003);
  const std::string table = closing_table(summary, example::buckets(), example::steps());
  EXPECT_THAT(table, HasSubstr("All-gather of rank 0"));
  EXPECT_THAT(table,
              HasSubstr("compressed by topk:16: a rank brings 504 B of gradients where dense ones are 4 kB; wire "
                        "0.126 of the 8000 B of dense ones\n"));
  EXPECT_THAT(table, HasSubstr("as many bytes as dense with 15.9 ranks"));
  EXPECT_THAT(table, HasSubstr("predicted on this link faster with any number"));
  EXPECT_THAT(table, HasSubstr("took 1.200 ms of backward, adding up the pieces of 2 ranks 0.300 ms"));
  summary.compress = "bf16", summary.payload = Bytes(2000);
  summary.wire_per_step = summary.planned_wire_per_step = Bytes(4000);
  EXPECT_THAT(closing_table(summary, example::buckets(), example::steps()), HasSubstr("wire 0.500 of the 8000 B"));
  summary.compress = "none";
  EXPECT_THAT(closing_table(summary, example::buckets(), example::steps()), Not(HasSubstr("compressed")));
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
