#include "annulet/report/memory_table.hpp"

#include <gmock/gmock.h>

namespace annulet::report {
namespace {

using testing::ContainsRegex;

// The largest rank's states need not be the sum of the largest.
TEST(MemoryTable, SetsCountedBesidePlannedAndAddsUpTheStatesOfARank) {
  train::Summary summary;
  summary.ranks = 2, summary.peak_rss = Bytes(50'000'000);
  summary.memory = {{"weights", true, {Bytes(4000), Bytes(3000)}, {Bytes(4000), Bytes(3000)}},
                    {"activations", false, {Bytes(7000), Bytes(7000)}, {Bytes(6500), Bytes(6500)}},
                    {"gradients", true, {Bytes(1000), Bytes(1500)}, {Bytes(1000), Bytes(1500)}}};
  const std::string table = memory_table(summary);
  EXPECT_THAT(table, ContainsRegex("memory, largest rank +counted +planned\n  weights +4 kB +4 kB\n"));
  EXPECT_THAT(table, ContainsRegex("  gradients +1.5 kB +1.5 kB\n  = model states +5 kB +5 kB\n"));
  EXPECT_THAT(table, ContainsRegex("  activations +7 kB +6.5 kB\n  largest process, with data and program: 50 MB\n"));
}

TEST(MemoryTable, IsEmptyWhereNothingIsKnown) { EXPECT_EQ(memory_table({}), ""); }

}  // namespace
}  // namespace annulet::report
