#include "annulet/schedule/execution.hpp"

#include <gmock/gmock.h>

namespace annulet::schedule {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

std::vector<ExecutionRange> parse(std::string_view text) {
  return parse_execution_ranges(Collective::all_reduce, text);
}

TEST(ExecutionRanges, AreReadAndWritten) {
  const auto ranges = parse("ring@256KiB:1MiB-max;recursive_doubling:0-8KiB");
  ASSERT_EQ(ranges.size(), 2U);
  EXPECT_EQ(ranges[0].algorithm, Algorithm::recursive_doubling);
  EXPECT_EQ(ranges[0].last, Bytes(8192));
  EXPECT_EQ(ranges[1].segment, Bytes(256 << 10));
  EXPECT_EQ(to_text(ranges), "recursive_doubling:0B-8192B;ring@262144B:1048576B-max");
  EXPECT_EQ(to_text(parse(to_text(ranges))), to_text(ranges));
}

TEST(ExecutionRanges, HoldBothTheirEnds) {
  const auto ranges = parse("recursive_doubling:8-8KiB;ring:8193-1MiB");
  const auto name = [&](std::int64_t bytes) {
    const auto* range = range_of(ranges, Bytes(bytes));
    return range == nullptr ? "none" : to_text(range->algorithm);
  };
  EXPECT_EQ(name(7), "none");
  EXPECT_EQ(name(8), "recursive_doubling");
  EXPECT_EQ(name(8192), "recursive_doubling");
  EXPECT_EQ(name(8193), "ring");
  EXPECT_EQ(name(1 << 20), "ring");
  EXPECT_EQ(name((1 << 20) + 1), "none");
}

TEST(ExecutionRanges, AreAllSizesWhereNoneAreGiven) {
  EXPECT_EQ(range_of(parse("direct"), Bytes(std::int64_t{1} << 50))->algorithm, Algorithm::direct);
  EXPECT_EQ(range_of(parse("ring@64KiB"), Bytes(0))->segment, Bytes(64 << 10));
}

TEST(ExecutionRanges, SayWhatIsWrong) {
  const auto refuses = [](std::string_view text, const char* why) {
    EXPECT_THAT([&] { parse(text); }, ThrowsMessage<InputError>(HasSubstr(why))) << text;
  };
  refuses("rings:0-8", "'rings' is no algorithm");
  refuses("bruck:0-8", "all_reduce has no algorithm bruck");
  refuses("ring:8", "a range has a first and a last size");
  refuses("ring:8-", "''");
  refuses("ring:9-8", "8 is less than 9");
  refuses("ring:0-8;", "'' is no algorithm");
  refuses("recursive_doubling@1KiB:0-8", "recursive_doubling cuts no segments");
  refuses("ring@0:0-8", "a segment has at least a byte");
  refuses("ring:0-8KiB;direct:8KiB-max", "8192 bytes are in two ranges");
}

TEST(Execution, SaysHowItRuns) {
  EXPECT_EQ(to_text(Execution{Algorithm::ring, Bytes(1000), 2}), "ring, segments of 1 kB");
  EXPECT_EQ(to_text(Execution{Algorithm::recursive_doubling, Bytes(1000), 2}), "recursive_doubling");
}

}  // namespace
}  // namespace annulet::schedule
