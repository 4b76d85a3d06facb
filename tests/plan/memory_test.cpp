#include "annulet/plan/memory.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "annulet/base/error.hpp"
#include "plan/answers.hpp"
#include "plan/models.hpp"

namespace annulet::plan {
namespace {

using testing::HasSubstr;

constexpr Elements kLlama = 6'738'149'376;  // the deck's LLaMA 7B, without norms

std::string in_gb(Bytes bytes, int digits = 2) { return fmt::format("{:.{}f}", bytes.as_double() / 1e9, digits); }

// As a row of the deck: "13.48 13.48 80.86 107.81 23.58".
std::string as_printed(const StageMemory& m) {
  return fmt::format("{} {} {} {} {}", in_gb(m.weights), in_gb(m.gradients), in_gb(m.optimizer), in_gb(m.total()),
                     in_gb(m.sent));
}

TEST(StageMemory, IsTheDecksForLlama7B) {
  const auto row = [](int ranks, int stage) { return as_printed(stage_memory(kLlama, ranks, stage, kMixed)); };
  EXPECT_EQ(row(8, 0), "13.48 13.48 80.86 107.81 23.58");
  EXPECT_EQ(row(8, 1), "13.48 13.48 10.11 37.06 23.58");
  EXPECT_EQ(row(8, 2), "13.48 1.68 10.11 25.27 23.58");
  EXPECT_EQ(row(8, 3), "1.68 1.68 10.11 13.48 35.38");
  EXPECT_EQ(row(64, 0), "13.48 13.48 80.86 107.81 26.53");
  EXPECT_EQ(row(64, 1), "13.48 13.48 1.26 28.22 26.53");
  EXPECT_EQ(row(64, 2), "13.48 0.21 1.26 14.95 26.53");
  EXPECT_EQ(row(64, 3), "0.21 0.21 1.26 1.68 39.80");
}

// Rajbhandari et al. 2020, figure 1 and table 1; in GB, to as many digits as are printed there.
TEST(StageMemory, IsTheZeroPapers) {
  struct Row {
    Elements parameters;
    int ranks;
    const char *one, *two, *three;
  };
  constexpr Elements k7B = 7'500'000'000, k128B = 128'000'000'000, k1T = 1'000'000'000'000;
  const auto printed = [](Elements parameters, int ranks, int stage, std::string_view published) {
    const std::size_t point = published.find('.');
    const int digits = point == std::string_view::npos ? 0 : static_cast<int>(published.size() - point - 1);
    return in_gb(stage_memory(parameters, ranks, stage, kMixed).total(), digits);
  };
  for (const Row& row :
       {Row{k7B, 4, "52.5", "41.25", "30"}, Row{k7B, 16, "35.6", "21.6", "7.5"}, Row{k7B, 64, "31.4", "16.6", "1.88"},
        Row{k7B, 1024, "30.1", "15.1", "0.12"}, Row{k128B, 4, "896", "704", "512"}, Row{k128B, 64, "536", "284", "32"},
        Row{k128B, 1024, "513.5", "257.75", "2"}, Row{k1T, 64, "4187.5", "2218.75", "250"},
        Row{k1T, 1024, "4011.72", "2013.67", "15.625"}}) {
    EXPECT_EQ(printed(row.parameters, row.ranks, 1, row.one), row.one) << row.parameters << ' ' << row.ranks;
    EXPECT_EQ(printed(row.parameters, row.ranks, 2, row.two), row.two) << row.parameters << ' ' << row.ranks;
    EXPECT_EQ(printed(row.parameters, row.ranks, 3, row.three), row.three) << row.parameters << ' ' << row.ranks;
  }
  EXPECT_EQ(printed(k7B, 64, 0, "120"), "120");
  EXPECT_EQ(printed(k7B, 64, 3, "1.9"), "1.9");
}

// Per micro-batch stage 2 reduces gradients and stage 3 gathers weights twice as well; the others send once a step.
TEST(StageMemory, SendsMoreWithAccumulationInStages2And3Only) {
  const auto sent = [](int stage, int micro_batches) {
    return stage_memory(1000, 4, stage, {2, 4, 12}, micro_batches).sent.value();
  };
  EXPECT_EQ(sent(0, 1), 750 * (4 + 2));
  EXPECT_EQ(sent(0, 5), sent(0, 1));
  EXPECT_EQ(sent(1, 5), sent(0, 1));
  EXPECT_EQ(sent(2, 1), sent(0, 1));
  EXPECT_EQ(sent(2, 5), 750 * (5 * 4 + 2));
  EXPECT_EQ(sent(3, 1), 750 * (4 + 2 * 2));
  EXPECT_EQ(sent(3, 5), 750 * 5 * (4 + 2 * 2));
  EXPECT_EQ(stage_memory(1000, 4, 3, {2, 4, 12}, 5).total(), stage_memory(1000, 4, 3, {2, 4, 12}, 1).total());
}

TEST(StageMemory, IsOfTheLargestShardWhereTheyDiffer) {
  const StageMemory m = stage_memory(10, 4, 3, kMixed);
  EXPECT_EQ(m.weights, Bytes(2 * 3));
  EXPECT_EQ(m.gradients, Bytes(2 * 3));
  EXPECT_EQ(m.optimizer, Bytes(12 * 3));
  EXPECT_EQ(m.sent, Bytes(45));  // 3/4 of 60
  EXPECT_EQ(stage_memory(2, 4, 1, kMixed).optimizer, Bytes(12));
}

TEST(StageMemory, OfOneRankIsTheSameInAllStagesAndSendsNothing) {
  for (int stage = 0; stage <= 3; ++stage) {
    EXPECT_EQ(stage_memory(1000, 1, stage, kFloat).total(), Bytes(16'000)) << stage;
    EXPECT_EQ(stage_memory(1000, 1, stage, kFloat).sent, Bytes(0)) << stage;
  }
}

TEST(StageMemory, IsOfStages0To3) {
  EXPECT_THROW(stage_memory(10, 4, 4, kMixed), ContractError);
  EXPECT_THROW(stage_memory(10, 0, 1, kMixed), ContractError);
}

TEST(LargestLayer, IsABlockOrWhatIsLargerOutsideOfThem) {
  const Architecture llama = config("llama-7b");
  EXPECT_EQ(largest_layer(llama), 4 * 4096 * 4096 + 3 * 4096 * 11'008 + 2 * 4096);
  EXPECT_EQ(tied_layer(llama), 0);
}

TEST(LargestLayer, IsNotTheTiedEmbeddingWhichStays) {
  EXPECT_EQ(largest_layer(config("gpt-2")), 12 * 768 * 768 + 13 * 768);
  EXPECT_EQ(tied_layer(config("gpt-2")), 50'257 * 768);
}

MemoryQuestion question() {
  MemoryQuestion q;
  q.model = "a model", q.parameters = 1'000'000'000, q.largest_layer = 100'000'000, q.ranks = 8;
  q.bucket = Bytes(25'000'000), q.device = Bytes(10'000'000'000);
  return q;
}

TEST(BucketsInFlight, AreThreeOfGradientsAndInStage3TheWeightsOfTwoLayersToo) {
  MemoryQuestion q = question();
  EXPECT_EQ(buckets_in_flight(q, 0), Bytes(0));
  EXPECT_EQ(buckets_in_flight(q, 1), Bytes(0));
  EXPECT_EQ(buckets_in_flight(q, 2), Bytes(75'000'000));
  EXPECT_EQ(buckets_in_flight(q, 3), Bytes(600'000'000 + 400'000'000));
  q.tied_layer = 10'000'000;
  EXPECT_EQ(buckets_in_flight(q, 2), Bytes(95'000'000));
  EXPECT_EQ(buckets_in_flight(q, 3), Bytes(620'000'000 + 420'000'000));
}

TEST(BucketsInFlight, AreNeverMoreThanTheModel) {
  MemoryQuestion q = question();
  q.parameters = q.largest_layer = 1000;
  EXPECT_EQ(buckets_in_flight(q, 2), Bytes(2000));
  EXPECT_EQ(buckets_in_flight(q, 3), Bytes(4000));
}

double value(const Answer& answer, int stage, const char* column) {
  return value_of(cell_of(table_of(answer, "memory"), {fmt::format("{}", stage)}, column));
}

std::string shown(const Answer& answer, int stage, const char* column) {
  return cell_of(table_of(answer, "memory"), {fmt::format("{}", stage)}, column).shown;
}

TEST(PlanMemory, AddsUpWhatIsNeededAndSaysWhetherItFits) {
  MemoryQuestion q = question();
  q.activations = Bytes(3'000'000'000), q.recomputed_activations = Bytes(500'000'000);
  const Answer answer = plan_memory(q);
  EXPECT_EQ(value(answer, 0, "needed_bytes"), 16e9 + 3e9);
  EXPECT_EQ(value(answer, 2, "needed_bytes"), 2e9 + 14e9 / 8 + 75e6 + 3e9);
  EXPECT_EQ(value(answer, 3, "needed_bytes"), 2e9 + 1e9 + 3e9);
  EXPECT_EQ(shown(answer, 0, "fits"), "no");
  EXPECT_EQ(shown(answer, 1, "fits"), "yes");
  q.recompute = true;
  EXPECT_EQ(value(plan_memory(q), 3, "needed_bytes"), 2e9 + 1e9 + 500e6);
  EXPECT_EQ(value(plan_memory(q), 3, "activations_bytes"), 3e9);
}

TEST(PlanMemory, SaysNothingOfWhatIsNotKnown) {
  MemoryQuestion q = question();
  q.device = Bytes(0), q.largest_layer = 0;
  const Answer answer = plan_memory(q);
  EXPECT_EQ(shown(answer, 0, "fits"), "-");
  EXPECT_EQ(shown(answer, 0, "activations_bytes"), "-");
  EXPECT_EQ(shown(answer, 3, "buckets_bytes"), "-");
  EXPECT_EQ(value(answer, 2, "buckets_bytes"), 75e6);
  EXPECT_THAT(answer.notes, testing::Contains(HasSubstr("not known")));
}

TEST(PlanMemory, ExplainsStatesAndTrafficOfEveryStage) {
  const Answer answer = plan_memory(question());
  EXPECT_EQ(answer.explanations.size(), 8U);
  EXPECT_EQ(answer.explanations[4].formula, "w P + (g + K) P / d");
  EXPECT_THAT(answer.explanations[4].inputs, HasSubstr("P = 1,000,000,000, d = 8, w = 2 B, g = 2 B, K = 12 B"));
  EXPECT_EQ(answer.explanations[4].result, shown(answer, 2, "states_bytes") + " GB");
}

}  // namespace
}  // namespace annulet::plan
