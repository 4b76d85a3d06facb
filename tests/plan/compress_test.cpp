#include "annulet/plan/compress.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "annulet/base/error.hpp"
#include "plan/answers.hpp"

namespace annulet::plan {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr Elements kLlama = 6'738'149'376;

CompressQuestion question() {
  CompressQuestion question;
  question.elements = kLlama, question.machine = machine_named("h100");
  return question;
}

const char* const kSparse = "1 in 16, 32 + 32 bits";

TEST(PlanCompress, ASixteenthWithPositionsStopsPayingAt16Ranks) {
  const Answer answer = plan_compress(question());
  EXPECT_EQ(cell_of(table_of(answer, "break_even"), {kSparse, "dense, 32 bits"}, "break_even_ranks").shown, "16.0");
}

TEST(PlanCompress, ASixteenthOfTheBytesInAllStopsPayingAt32Ranks) {
  const Answer answer = plan_compress(question());
  const Table& table = table_of(answer, "break_even");
  EXPECT_EQ(cell_of(table, {"M / 16, positions included", "dense, 32 bits"}, "break_even_ranks").shown, "32.0");
}

TEST(PlanCompress, ASixteenthInBfloat16StopsPayingAt10Point7Ranks) {
  const Answer answer = plan_compress(question());
  const Table& table = table_of(answer, "break_even");
  EXPECT_EQ(cell_of(table, {"1 in 16, 16 + 32 bits", "dense, 16 bits"}, "break_even_ranks").shown, "10.7");
}

TEST(PlanCompress, BreaksEvenAtTwiceTheDenseBitsOverThoseKept) {
  EXPECT_DOUBLE_EQ(break_even_ranks(1.0 / 16, 32, 32, 32), 16);
  EXPECT_DOUBLE_EQ(break_even_ranks(1.0 / 16, 16, 16, 32), 32.0 / 3);
  EXPECT_DOUBLE_EQ(break_even_ranks(0.01, 32, 8, 24), 200);
  EXPECT_DOUBLE_EQ(break_even_ranks(1.0 / 16, 32, 32, 0), 32);
}

// p delta: (p-1) 2 delta M over 2 (p-1)/p M.
TEST(PlanCompress, TheRatioOnTheWireIsRanksTimesDensity) {
  CompressQuestion q = question();
  q.densities = {1.0 / 16, 1.0 / 64}, q.ranks = {2, 8, 16, 64};
  const Answer answer = plan_compress(q);
  for (const int ranks : q.ranks) {
    for (const int part : {16, 64}) {
      const Cell& cell =
          cell_of(table_of(answer, "compress"), {fmt::format("{}", ranks), fmt::format("1 in {}, 32 + 32 bits", part)},
                  "wire_over_dense");
      EXPECT_NEAR(value_of(cell), static_cast<double>(ranks) / part, 1e-12);
    }
  }
}

TEST(PlanCompress, EachRankSendsThePayloadToAllOthers) {
  const Answer answer = plan_compress(question());
  const Table& table = table_of(answer, "compress");
  const double payload = 8.0 * kLlama / 16;
  EXPECT_EQ(value_of(cell_of(table, {"64", kSparse}, "payload_bytes")), payload);
  EXPECT_EQ(value_of(cell_of(table, {"64", kSparse}, "wire_mean_bytes")), 63 * payload);
  EXPECT_NEAR(value_of(cell_of(table, {"64", kSparse}, "time_seconds")), 63 * (10e-6 + payload / 50e9), 1e-9);
  EXPECT_EQ(cell_of(table, {"64", kSparse}, "pays").shown, "no");
  EXPECT_EQ(cell_of(table, {"8", kSparse}, "pays").shown, "yes");
}

// Among 64 GPUs the ring of bfloat16 sends 26.53 GB, half of what float does.
TEST(PlanCompress, NarrowTypesAreAddedOnTheWay) {
  const Answer answer = plan_compress(question());
  const Table& table = table_of(answer, "compress");
  const Cell& sent = cell_of(table, {"64", "dense, 16 bits"}, "wire_mean_bytes");
  EXPECT_EQ(fmt::format("{:.2f}", value_of(sent) / 1e9), "26.53");
  EXPECT_EQ(cell_of(table, {"64", "dense, 16 bits"}, "wire_over_dense").shown, "0.500");
  EXPECT_EQ(cell_of(table, {"64", "dense, 16 bits"}, "pays").shown, "yes");
}

// Large gradients: as by bytes. Small ones: an all-gather has half of the ring's latencies, and pays for longer.
TEST(PlanCompress, ByTimeItDependsOnTheLatencyToo) {
  CompressQuestion large = question(), small = question();
  small.elements = 16'000;
  const auto slower_from = [](const CompressQuestion& q) {
    return value_of(cell_of(table_of(plan_compress(q), "break_even"), {kSparse}, "slower_from_ranks"));
  };
  EXPECT_EQ(slower_from(large), 17);  // at 16 the bytes are the same, and there are fewer latencies
  small.machine = machine_named("ethernet-1g");
  EXPECT_GT(slower_from(small), 20);
  small.elements = 16;
  EXPECT_EQ(cell_of(table_of(plan_compress(small), "break_even"), {kSparse}, "slower_from_ranks").shown, "-");
}

TEST(PlanCompress, SlowerFromIsTheFirstNumberOfRanksThatIsSlower) {
  CompressQuestion q = question();
  for (const char* machine : {"h100", "ethernet-10g", "cpu-cluster"}) {
    q.machine = machine_named(machine), q.elements = 100'000'000;
    const int from =
        static_cast<int>(value_of(cell_of(table_of(plan_compress(q), "break_even"), {kSparse}, "slower_from_ranks")));
    q.ranks = {from - 1, from};
    const Answer answer = plan_compress(q);
    const Table& table = table_of(answer, "compress");
    EXPECT_EQ(cell_of(table, {fmt::format("{}", from - 1), kSparse}, "pays").shown, "yes") << machine;
    EXPECT_EQ(cell_of(table, {fmt::format("{}", from), kSparse}, "pays").shown, "no") << machine;
  }
}

TEST(PlanCompress, CountsTheValuesThatAreKept) {
  CompressQuestion q = question();
  q.elements = 33, q.ranks = {2};
  const Answer answer = plan_compress(q);
  EXPECT_EQ(cell_of(table_of(answer, "compress"), {"2", kSparse}, "payload_bytes").shown, "24 B");  // 3 of 33
}

TEST(PlanCompress, ExplainsEveryNumber) {
  const Answer answer = plan_compress(question());
  EXPECT_EQ(answer.explanations.size(),
            3 * table_of(answer, "compress").rows.size() + 2 * table_of(answer, "break_even").rows.size());
  for (const Explanation& e : answer.explanations) {
    EXPECT_FALSE(e.what.empty() || e.formula.empty() || e.inputs.empty() || e.result.empty()) << e.what;
  }
}

TEST(PlanCompress, RefusesWhatMakesNoSense) {
  const auto refuses = [](auto change, const char* why) {
    CompressQuestion q = question();
    change(q);
    EXPECT_THAT([&] { plan_compress(q); }, ThrowsMessage<InputError>(HasSubstr(why)));
  };
  refuses([](auto& q) { q.ranks = {0}; }, "0 ranks (there would be nothing to compare). Give 1 or more.");
  refuses([](auto& q) { q.ranks.clear(); }, "no ranks");
  refuses([](auto& q) { q.densities = {1.5}; }, "a density of 1.5");
  refuses([](auto& q) { q.densities = {0}; }, "a density of 0");
  refuses([](auto& q) { q.value_bits = 0; }, "sent values of 0");
  refuses([](auto& q) { q.narrow_bits = {-1}; }, "-1-bit values");
  refuses([](auto& q) { q.elements = -1; }, "a gradient of -1 elements");
}

}  // namespace
}  // namespace annulet::plan
