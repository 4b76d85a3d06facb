#include "annulet/plan/scale.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <numeric>

#include "annulet/base/error.hpp"
#include "plan/answers.hpp"
#include "plan/models.hpp"

namespace annulet::plan {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

// Four tensors of 1 MB, 10 ms of forward and 5 ms of backward for each, a token a rank.
ScaleQuestion question(Seconds alpha, ByteRate bandwidth) {
  StepQuestion step;
  step.work = {"four tensors", std::vector<Elements>(4, 250'000), std::vector<Flops>(4, Flops(5000)), Flops(30'000)};
  step.machine.inside = step.machine.between = {alpha, Seconds(0), cost::SecondsPerByte(1 / bandwidth.value()),
                                                cost::SecondsPerByte(0), "test"};
  step.machine.device.peaks = {{"fp32", FlopRate(1e6)}};
  step.type = "fp32", step.efficiency = 1, step.tokens = 1, step.gradient = Bytes(4);
  return {step, {1, 2, 4, 8, 16}};
}

ScaleQuestion usual() { return question(Seconds(20e-6), ByteRate(1.25e9)); }
ScaleQuestion without_network() { return question(Seconds(0), ByteRate(1e18)); }

TEST(Scale, WeakKeepsARanksTokensAndLosesEfficiency) {
  const auto points = scale(usual());
  ASSERT_EQ(points.size(), 5U);
  EXPECT_NEAR(points[0].step.count(), 30e-3, 1e-12);
  EXPECT_EQ(points[0].efficiency, 1);
  EXPECT_NEAR(points[0].mfu, 1, 1e-12);
  for (std::size_t i = 1; i < points.size(); ++i) {
    EXPECT_EQ(points[i].tokens, points[i].ranks);
    EXPECT_LT(points[i].efficiency, points[i - 1].efficiency) << points[i].ranks;
    EXPECT_NEAR(points[i].efficiency, points[0].step / points[i].step, 1e-12);
    EXPECT_NEAR(points[i].mfu, points[i].efficiency, 1e-12);
  }
}

TEST(Scale, StrongKeepsTheStepsTokens) {
  ScaleQuestion q = usual();
  q.strong = true, q.step.tokens = 16;
  const auto points = scale(q);
  EXPECT_NEAR(points[0].step.count(), 16 * 30e-3, 1e-12);
  for (std::size_t i = 1; i < points.size(); ++i) {
    EXPECT_EQ(points[i].tokens, 16);
    EXPECT_LT(points[i].step, points[i - 1].step);
    EXPECT_LE(points[i].efficiency, points[i - 1].efficiency);
  }
  EXPECT_NEAR(points[4].step.count(), scale(usual())[4].step.count(), 1e-12);  // a token a rank either way
}

TEST(Scale, WithoutANetworkIsAsLongAsTheSlowestRankComputes) {
  ScaleQuestion q = without_network();
  q.jitter = 0.3, q.seed = 7;
  for (const ScalePoint& point : scale(q)) {
    const auto factors = slowdowns(point.ranks, 0.3, 7);
    EXPECT_NEAR(point.step.count(), std::ranges::max(factors) * 30e-3, 1e-9) << point.ranks;
    EXPECT_EQ(point.limit, Limit::stragglers) << point.ranks;
  }
}

TEST(Slowdowns, DependOnSeedAndRankAlone) {
  const auto few = slowdowns(10, 0.1, 1), many = slowdowns(1000, 0.1, 1), others = slowdowns(10, 0.1, 2);
  EXPECT_TRUE(std::equal(few.begin(), few.end(), many.begin()));
  EXPECT_NE(few, others);
  EXPECT_GE(std::ranges::min(many), 1);
  EXPECT_TRUE(slowdowns(10, 0, 1).empty());
  double sum = 0;  // of sigma |z|, whose mean is sigma sqrt(2 / pi)
  for (const double factor : many) sum += std::log(factor);
  EXPECT_NEAR(sum / 1000, 0.1 * 0.798, 0.006);
}

TEST(Scale, NamesWhatLimits) {
  const auto limit = [](ScaleQuestion q) {
    q.ranks = {1, 16};
    return to_text(scale(q)[1].limit);
  };
  EXPECT_EQ(limit(without_network()), "computing");
  EXPECT_EQ(limit(question(Seconds(5e-3), ByteRate(1e12))), "latency");
  EXPECT_EQ(limit(question(Seconds(1e-6), ByteRate(1e8))), "bandwidth");
  ScaleQuestion late = without_network();
  late.jitter = 0.1;
  EXPECT_EQ(limit(late), "stragglers");
}

// What a number of ranks takes by event simulation and by the ring's closed form, at the bucket that was chosen.
TEST(Scale, SimulatedIsAsTheClosedFormWhereBothServe) {
  ScaleQuestion q = usual();
  q.ranks = {2, 3, 8, 16, 32};
  for (const ScalePoint& point : scale(q)) {
    EXPECT_TRUE(point.simulated) << point.ranks;
    StepQuestion step = q.step;
    step.ranks = point.ranks, step.tokens = point.tokens;
    step.sync = {point.bucket, point.bucket, Bytes(4'000'000), 4};
    cost::StepInput input = step_input(step, cost::Driver::thread);
    input.closed_form = true;
    EXPECT_NEAR(cost::predict_step(input).step / point.step, 1, 0.02) << point.ranks;
  }
}

// On nodes of eight as well, where neither latencies nor ports alone decide.
TEST(Scale, HasNoKinkWhereTheClosedFormBegins) {
  ScaleQuestion q;
  q.step.work = work_of(config("gpt-2")), q.step.machine = machine_named("h100"), q.step.tokens = 1024;
  q.ranks = {16, 64};
  for (const ScalePoint& point : scale(q)) {
    ASSERT_TRUE(point.simulated) << point.ranks;
    StepQuestion step = q.step;
    step.ranks = point.ranks, step.tokens = point.tokens;
    step.sync = {point.bucket, point.bucket, Bytes(1 << 30), 4};
    cost::StepInput input = step_input(step, cost::Driver::thread);
    input.closed_form = true;
    EXPECT_NEAR(cost::predict_step(input).step / point.step, 1, 0.02) << point.ranks;
  }
}

TEST(Scale, TakesTheBucketThatIsAskedFor) {
  ScaleQuestion q = usual();
  q.choose_bucket = false, q.step.sync.bucket = q.step.sync.first_bucket = Bytes(2'000'000);
  for (const ScalePoint& point : scale(q)) EXPECT_EQ(point.bucket, Bytes(2'000'000));
}

TEST(Scale, GoesTo16384Ranks) {
  ScaleQuestion q;
  q.step.work = work_of(config("llama-7b")), q.step.machine = machine_named("h100"), q.step.tokens = 16'384;
  for (int ranks = 1; ranks <= 16'384; ranks *= 2) q.ranks.push_back(ranks);
  const auto points = scale(q);
  ASSERT_EQ(points.size(), 15U);
  EXPECT_EQ(points.back().nodes, 2048);
  EXPECT_EQ(points.back().tokens, 16'384 * 16'384);
  EXPECT_TRUE(points[3].simulated);
  EXPECT_FALSE(points.back().simulated);
  EXPECT_NEAR(points[0].mfu, 0.473, 1e-9);
  for (std::size_t i = 1; i < points.size(); ++i) {
    EXPECT_LE(points[i].efficiency, points[i - 1].efficiency + 1e-9) << points[i].ranks;
  }
  EXPECT_EQ(points.back().limit, Limit::bandwidth);
}

TEST(CriticalBatch, MakesStepsInProportionTo1PlusCOverB) {
  EXPECT_EQ(relative_steps(1000, 1000), 2);
  EXPECT_EQ(relative_steps(500, 1000), 3);
  EXPECT_EQ(relative_steps(4000, 1000), 1.25);
  ScaleQuestion q = without_network();
  q.critical_batch = 4;
  const Answer answer = plan_scale(q);
  const Table& table = table_of(answer, "critical_batch");
  const auto of = [&](const char* ranks, const char* column) { return value_of(cell_of(table, {ranks}, column)); };
  EXPECT_DOUBLE_EQ(of("1", "relative_steps"), 1);
  EXPECT_DOUBLE_EQ(of("4", "relative_steps"), 2. / 5);
  EXPECT_NEAR(of("16", "relative_time"), 1.25 / 5, 1e-6);
  EXPECT_DOUBLE_EQ(of("16", "relative_tokens"), 1.25 / 5 * 16);
}

TEST(PlanScale, SaysHowEachRowWasComputed) {
  ScaleQuestion q = usual();
  q.ranks = {1, 8, 1024};
  const Answer answer = plan_scale(q);
  const Table& table = table_of(answer, "scale");
  EXPECT_EQ(cell_of(table, {"1"}, "how").shown, "computing only");
  EXPECT_EQ(cell_of(table, {"8"}, "how").shown, "event simulation");
  EXPECT_EQ(cell_of(table, {"1,024"}, "how").shown, "closed form");
  EXPECT_EQ(answer.explanations.size(), 3U);
  EXPECT_EQ(answer.tables.size(), 1U);
}

TEST(PlanScale, RefusesWhatMakesNoSense) {
  const auto refuses = [](auto change, const char* why) {
    ScaleQuestion q = usual();
    change(q);
    EXPECT_THAT([&] { plan_scale(q); }, ThrowsMessage<InputError>(HasSubstr(why)));
  };
  refuses([](auto& q) { q.ranks = {8, 1}; }, "ascending order. Give --ranks 1,8,64.");
  refuses([](auto& q) { q.ranks = {0, 1}; }, "ascending order");
  refuses([](auto& q) { q.ranks.clear(); }, "ascending order");
  refuses([](auto& q) { q.jitter = -1; }, "a jitter of -1 makes no sense. Give --jitter 0.05.");
  refuses([](auto& q) { q.critical_batch = 0; }, "at least one token");
  refuses([](auto& q) { q.step.tokens = -3; }, "-3 tokens");
}

}  // namespace
}  // namespace annulet::plan
