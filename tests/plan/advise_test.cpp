#include "annulet/plan/advise.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <tuple>

#include "annulet/base/error.hpp"
#include "plan/answers.hpp"
#include "plan/models.hpp"

namespace annulet::plan {
namespace {

using testing::Contains;
using testing::Each;
using testing::Field;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using testing::ThrowsMessage;

// Two sequences for each of 64 H100s.
AdviceQuestion llama() {
  AdviceQuestion q;
  q.architecture = config("llama-7b");
  q.step.work = work_of(q.architecture), q.step.machine = machine_named("h100");
  q.step.ranks = 64, q.step.tokens = 64 * 2 * 4096;
  q.memory = q.step.machine.device.memory;
  return q;
}

TEST(Advise, FeasibleOnesFitAndTheFastestComesFirst) {
  const AdviceQuestion q = llama();
  const Advice advice = advise(q);
  ASSERT_GT(advice.feasible.size(), 2U);
  for (std::size_t i = 0; i < advice.feasible.size(); ++i) {
    const Candidate& c = advice.feasible[i];
    EXPECT_LE(c.needed(), q.memory);
    EXPECT_EQ(c.needed(), c.states + c.activations + c.in_flight);
    EXPECT_NEAR(c.mfu, utilisation(q.step, c.step), 1e-12);
    EXPECT_FALSE(c.reason.empty());
    EXPECT_GE(c.micro_batch * c.accumulated, 2);
    if (i > 0) {
      EXPECT_LE(advice.feasible[i - 1].step, c.step);
    }
  }
}

TEST(Advise, InfeasibleOnesSayWhatTheyLack) {
  const AdviceQuestion q = llama();
  const Advice advice = advise(q);
  ASSERT_FALSE(advice.infeasible.empty());
  for (std::size_t i = 0; i < advice.infeasible.size(); ++i) {
    const Candidate& c = advice.infeasible[i];
    EXPECT_GT(c.needed(), q.memory);
    EXPECT_THAT(c.reason, StartsWith("lacks " + to_text(c.needed() - q.memory) + ": states " + to_text(c.states)));
    if (i > 0) {
      EXPECT_LE(advice.infeasible[i - 1].needed(), c.needed());
    }
  }
}

// 16 bytes of state a parameter are 107.8 GB.
TEST(Advise, Stage0OfLlama7BDoesNotFit80GB) {
  const Advice advice = advise(llama());
  EXPECT_THAT(advice.feasible, Each(Field(&Candidate::stage, Not(0))));
  EXPECT_THAT(advice.infeasible, Contains(Field(&Candidate::stage, 0)));
  AdviceQuestion roomy = llama();
  roomy.memory = Bytes(400'000'000'000);
  const Advice all = advise(roomy);
  EXPECT_THAT(all.feasible, Contains(Field(&Candidate::stage, 0)));
  EXPECT_TRUE(all.infeasible.empty());
}

TEST(Advise, HasOneCandidateForEachStageMicroBatchAndRecomputation) {
  const Advice advice = advise(llama());
  EXPECT_EQ(advice.feasible.size() + advice.infeasible.size(), 4U * 2 * 2);
  std::vector<std::tuple<int, Elements, bool>> kinds;
  for (const auto* list : {&advice.feasible, &advice.infeasible}) {
    for (const Candidate& c : *list) kinds.emplace_back(c.stage, c.micro_batch, c.recompute);
  }
  std::ranges::sort(kinds);
  EXPECT_EQ(std::ranges::adjacent_find(kinds), kinds.end());
}

const Candidate& find(const Advice& advice, int stage, Elements micro_batch, bool recompute) {
  for (const auto* list : {&advice.feasible, &advice.infeasible}) {
    for (const Candidate& c : *list) {
      if (c.stage == stage && c.micro_batch == micro_batch && c.recompute == recompute) return c;
    }
  }
  throw std::out_of_range("no such candidate");
}

// Two tensors on two ranks with two sequences of one token each: compute 30 ms, of a micro-batch 5 ms forward and 10 ms
// backward. A reduce-scatter, and an all-gather, of one of two buckets of 1000 bytes takes 1 ms + 0.5 ms.
AdviceQuestion by_hand() {
  AdviceQuestion q;
  q.architecture.kind = Kind::mlp, q.architecture.widths = {1, 1, 1}, q.architecture.name = "by hand";
  StepQuestion& step = q.step;
  step.work = {"by hand", {250, 250}, {Flops(5000), Flops(5000)}, Flops(15'000)};
  step.machine.inside =
      step.machine.between = {Seconds(1e-3), Seconds(0), cost::SecondsPerByte(1e-6), cost::SecondsPerByte(0), "test"};
  step.machine.device.peaks = {{"fp32", FlopRate(1e6)}};
  step.type = "fp32", step.efficiency = 1, step.ranks = 2, step.tokens = 4, step.gradient = Bytes(4);
  q.bytes = kFloat, q.memory = Bytes(1'000'000), q.buckets = {Bytes(1000)};
  return q;
}

TEST(Advise, PricesStagesAsAHandDoes) {
  const Advice advice = advise(by_hand());
  const auto exposed = [&](int stage, Elements micro_batch) {
    return find(advice, stage, micro_batch, false).exposed.count();
  };
  EXPECT_NEAR(find(advice, 0, 1, false).step.count(), 30e-3 + exposed(0, 1), 1e-12);
  // At two ranks the fastest all-reduce of a bucket is one exchange by recursive doubling, 1 ms + 1 ms.
  EXPECT_NEAR(exposed(0, 1), 2e-3, 1e-12);
  EXPECT_NEAR(exposed(1, 1), 1.5e-3 + 1.5e-3, 1e-12);
  EXPECT_NEAR(exposed(2, 1), 1.5e-3 + 1.5e-3, 1e-12);
  EXPECT_NEAR(exposed(3, 1), 2 * (1.5e-3 + 1.5e-3), 1e-12);  // twice, once for each micro-batch
  EXPECT_NEAR(exposed(3, 2), 1.5e-3 + 1.5e-3, 1e-12);
}

// At 10 MFLOP/s: forward of a micro-batch 0.5 ms, backward 1 ms.
TEST(Advise, ExposesWhatComputingDoesNotHide) {
  AdviceQuestion q = by_hand();
  q.step.machine.device.peaks["fp32"] = FlopRate(10e6);
  const Advice advice = advise(q);
  EXPECT_NEAR(find(advice, 0, 1, false).exposed.count(), 4e-3 - 1e-3, 1e-12);
  EXPECT_NEAR(find(advice, 1, 1, false).exposed.count(), 3e-3 - 1e-3 + 3e-3 - 0.5e-3, 1e-12);
  EXPECT_NEAR(find(advice, 2, 1, false).exposed.count(), 1.5e-3 + 2 * (3e-3 - 1e-3) + 3e-3 - 0.5e-3, 1e-12);
  EXPECT_NEAR(find(advice, 3, 1, false).exposed.count(), 2 * (3e-3 - 0.5e-3 + 6e-3 - 1e-3), 1e-12);
}

TEST(Advise, RecomputingNeedsLessMemoryAndMoreTime) {
  const Advice advice = advise(llama());
  const Candidate &kept = find(advice, 3, 2, false), &again = find(advice, 3, 2, true);
  EXPECT_LT(again.activations, kept.activations);
  EXPECT_GT(again.step, kept.step);
  EXPECT_LT(again.mfu, kept.mfu);
}

TEST(Advise, OfOneRankSendsNothing) {
  AdviceQuestion q = by_hand();
  q.step.ranks = 1, q.step.tokens = 1;
  for (const Candidate& c : advise(q).feasible) EXPECT_EQ(c.exposed, Seconds(0));
}

TEST(PlanAdvise, ShowsBothTablesCutToTheMost) {
  AdviceQuestion q = llama();
  q.most = 2;
  const Answer answer = plan_advise(q);
  EXPECT_EQ(table_of(answer, "feasible").rows.size(), 2U);
  EXPECT_EQ(table_of(answer, "infeasible").rows.size(), 2U);
  EXPECT_EQ(answer.explanations.size(), 2U);
  EXPECT_THAT(table_of(answer, "feasible").title, HasSubstr("llama-7b on 64 ranks of 80 GB each, 524,288 tokens"));
  EXPECT_THAT(answer.notes, Not(Contains(HasSubstr("nothing fits"))));
}

TEST(PlanAdvise, SaysWhenNothingFits) {
  AdviceQuestion q = llama();
  q.memory = Bytes(1'000'000'000);
  const Answer answer = plan_advise(q);
  EXPECT_TRUE(table_of(answer, "feasible").rows.empty());
  EXPECT_EQ(table_of(answer, "infeasible").rows.size(), 12U);
  EXPECT_THAT(answer.notes, Contains(StartsWith("nothing fits: more ranks")));
}

TEST(PlanAdvise, RefusesADeviceOfUnknownMemory) {
  AdviceQuestion q = llama();
  q.memory = Bytes(0), q.step.machine_name = "box.toml";
  EXPECT_THAT([&] { plan_advise(q); },
              ThrowsMessage<InputError>(HasSubstr("box.toml: no memory in [device] (what fits and what does not would "
                                                  "be unknown). Give --memory, say 80GB.")));
  q = llama(), q.step.tokens = -1;
  EXPECT_THAT([&] { plan_advise(q); }, ThrowsMessage<InputError>(HasSubstr("-1 tokens")));
}

}  // namespace
}  // namespace annulet::plan
