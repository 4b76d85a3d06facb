#include "annulet/plan/collectives.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "annulet/base/error.hpp"
#include "plan/answers.hpp"

namespace annulet::plan {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr Bytes kGradients{2 * 6'738'149'376};  // of LLaMA 7B in bfloat16

Answer llama(const std::string& machine, int ranks) {
  return plan_collectives({kGradients, ranks, machine_named(machine), machine, "the gradients of llama-7b", Bytes(2)});
}

// A row as the deck prints it: "52.5 ms, 23.58 GB".
std::string as_printed(const Answer& answer, const std::string& kind, const std::string& algorithm) {
  const Table& table = table_of(answer, "collectives");
  const double seconds = value_of(cell_of(table, {kind, algorithm}, "time_seconds"));
  const double sent = value_of(cell_of(table, {kind, algorithm}, "wire_mean_bytes"));
  return (seconds < 1 ? fmt::format("{:.1f} ms", seconds * 1e3) : fmt::format("{:.2f} s", seconds)) +
         fmt::format(", {:.2f} GB", sent / 1e9);
}

void expect_deck_on_nvlink(const Answer& answer) {
  EXPECT_EQ(as_printed(answer, "all-reduce", "ring"), "52.5 ms, 23.58 GB");
  EXPECT_EQ(as_printed(answer, "all-reduce", "tree, closed form"), "179.7 ms, 26.95 GB");
  EXPECT_EQ(as_printed(answer, "reduce-scatter", "ring"), "26.2 ms, 11.79 GB");
  EXPECT_EQ(as_printed(answer, "all-gather", "ring"), "26.2 ms, 11.79 GB");
}

void expect_deck_on_the_network(const Answer& answer) {
  EXPECT_EQ(as_printed(answer, "all-reduce", "ring"), "531.9 ms, 26.53 GB");
  EXPECT_EQ(as_printed(answer, "all-reduce", "tree, closed form"), "3.23 s, 26.95 GB");
  EXPECT_EQ(as_printed(answer, "reduce-scatter", "ring"), "265.9 ms, 13.27 GB");
  EXPECT_EQ(as_printed(answer, "all-gather", "ring"), "265.9 ms, 13.27 GB");
}

TEST(PlanCollectives, GivesTheDecksTable) {
  expect_deck_on_nvlink(llama("h100", 8));
  expect_deck_on_nvlink(llama("nvlink-h100", 8));
  expect_deck_on_the_network(llama("h100", 64));
  expect_deck_on_the_network(llama("network-400g", 64));
}

TEST(PlanCollectives, GivesTheDecksWideAreaNetwork) {
  const Answer answer = llama("wan-100gbe", 64);
  const Cell& time = cell_of(table_of(answer, "collectives"), {"all-reduce", "ring"}, "time_seconds");
  EXPECT_EQ(fmt::format("{:.2f}", value_of(time)), "2.12");
}

// The root sends ceil(log2 p) M, a leaf M, all together 2 (p-1) M.
TEST(PlanCollectives, ShowsTheBinomialTreesOwnBytesBesideTheClosedForm) {
  const Answer answer = llama("h100", 64);
  const Table& table = table_of(answer, "collectives");
  const auto of = [&](const char* algorithm, const char* column) {
    return value_of(cell_of(table, {"all-reduce", algorithm}, column));
  };
  const double bytes = kGradients.as_double();
  EXPECT_EQ(of("binomial tree", "wire_least_bytes"), bytes);
  EXPECT_EQ(of("binomial tree", "wire_largest_bytes"), 6 * bytes);
  EXPECT_DOUBLE_EQ(of("binomial tree", "wire_mean_bytes"), 2 * 63 * bytes / 64);
  for (const char* column : {"wire_least_bytes", "wire_mean_bytes", "wire_largest_bytes"}) {
    EXPECT_EQ(of("tree, closed form", column), 2 * bytes);
  }
  EXPECT_EQ(of("binomial tree", "time_seconds"), of("tree, closed form", "time_seconds"));
}

TEST(PlanCollectives, SplitsTheTime) {
  const Answer answer = llama("h100", 8);
  const Table& table = table_of(answer, "collectives");
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const auto value = [&](std::size_t column) { return value_of(table.rows[row][column]); };
    EXPECT_DOUBLE_EQ(value(3), value(4) + value(5) + value(6)) << row;
  }
  EXPECT_EQ(cell_of(table, {"all-reduce", "ring"}, "latency_seconds").shown, "70 us");
  EXPECT_EQ(cell_of(table, {"all-reduce", "ring"}, "steps").shown, "14");
  EXPECT_EQ(cell_of(table, {"all-reduce", "ring"}, "wire_over_least").shown, "1.000");
  EXPECT_EQ(cell_of(table, {"all-reduce", "recursive doubling"}, "wire_over_least").shown, "1.714");
  EXPECT_EQ(cell_of(table, {"all-gather", "ring"}, "payload_bytes").shown, "1.685 GB");
}

cost::Machine example() {
  cost::Machine machine;
  machine.inside = machine.between = {Seconds(20e-6), Seconds(0), cost::SecondsPerByte(1 / 1.25e9),
                                      cost::SecondsPerByte(0), "example"};
  return machine;
}

TEST(PlanCollectives, GivesTheWorkedExample) {
  const Answer answer = plan_collectives({Bytes(100'000'000), 4, example()});
  const Table& table = table_of(answer, "collectives");
  EXPECT_EQ(fmt::format("{:.6f}", value_of(cell_of(table, {"all-reduce", "ring"}, "time_seconds"))), "0.120120");
  EXPECT_EQ(fmt::format("{:.6f}", value_of(cell_of(table, {"all-reduce", "binomial tree"}, "time_seconds"))),
            "0.320080");
}

TEST(PlanCollectives, SaysWhereOneAlgorithmOvertakesAnother) {
  const Answer answer = plan_collectives({Bytes(1), 8, example()});
  const Table& table = table_of(answer, "crossovers");
  EXPECT_EQ(cell_of(table, {"all-reduce", "recursive doubling", "ring"}, "size_bytes").shown, "220,000");
}

TEST(PlanCollectives, ExplainsEveryNumber) {
  const Answer answer = llama("h100", 6);
  const std::size_t rows = table_of(answer, "collectives").rows.size();
  EXPECT_EQ(answer.explanations.size(), 10 * rows + table_of(answer, "crossovers").rows.size());
  for (const Explanation& e : answer.explanations) {
    EXPECT_FALSE(e.what.empty() || e.formula.empty() || e.inputs.empty() || e.result.empty()) << e.what;
  }
  const auto found = std::ranges::find(answer.explanations, "all-reduce by ring, bandwidth", &Explanation::what);
  ASSERT_NE(found, answer.explanations.end());
  EXPECT_EQ(found->formula, "2 (p-1)/p M beta");
  EXPECT_EQ(found->inputs, "p = 6, M = 13476298752 B, alpha = 5 us, 1 / beta = 450 GB/s");
  EXPECT_EQ(found->result, "49.91 ms");
}

TEST(PlanCollectives, SaysWhichLinkItTook) {
  const auto title = [](int ranks_per_node, int ranks) {
    cost::Machine machine = machine_named("h100");
    machine.device.ranks_per_node = ranks_per_node;
    return plan_collectives({Bytes(8), ranks, machine}).tables[0].title;
  };
  EXPECT_THAT(title(8, 8), HasSubstr("8 ranks, inside a node of 8 (alpha 5 us, 450 GB/s)"));
  EXPECT_THAT(title(8, 9), HasSubstr("9 ranks, nodes of 8, inside alpha 5 us, 450 GB/s, between alpha 10 us, 50 GB/s"));
  EXPECT_THAT(title(0, 4), HasSubstr("4 ranks, between nodes (alpha 10 us, 50 GB/s)"));
  cost::Machine unknown = machine_named("h100");
  unknown.device.ranks_per_node = 0;
  EXPECT_THAT(plan_collectives({Bytes(8), 4, unknown}).notes, testing::Contains(HasSubstr("a node of its own")));
}

TEST(PlanCollectives, ServesFromOneRankToManyThousands) {
  for (const int ranks : {1, 3, 16'384}) {
    const Answer answer = plan_collectives({Bytes(1 << 20), ranks, machine_named("h100")});
    EXPECT_GE(table_of(answer, "collectives").rows.size(), 12U) << ranks;
  }
  const Answer nothing = plan_collectives({Bytes(0), 4, machine_named("h100")});
  EXPECT_EQ(cell_of(table_of(nothing, "collectives"), {"all-reduce", "ring"}, "wire_mean_bytes").shown, "0 B");
}

TEST(PlanCollectives, RefusesWhatMakesNoSense) {
  const auto refuses = [](CollectivesQuestion question, const char* why) {
    EXPECT_THAT([&] { plan_collectives(question); }, ThrowsMessage<InputError>(HasSubstr(why)));
  };
  refuses({Bytes(8), 0, example()}, "0 ranks (a collective has at least one). Give ranks = 1 or more.");
  refuses({Bytes(-8), 2, example()}, "neither may be negative");
  refuses({Bytes(7), 2, example(), "", "", Bytes(2)}, "7 bytes are no whole number of elements of 2 B");
}

}  // namespace
}  // namespace annulet::plan
