#include "annulet/plan/step.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "annulet/base/error.hpp"
#include "plan/answers.hpp"
#include "plan/models.hpp"

namespace annulet::plan {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

// The deck's: 2^20 tokens on 64 H100s, without the gains of the norms.
StepQuestion llama(const std::string& machine = "h100") {
  StepQuestion q{work_of(config("llama-7b")), machine_named("h100")};
  std::erase_if(q.work.tensors, [](Elements size) { return size == 4096; });
  q.work.backward.assign(q.work.tensors.size(), 2. / 3 / static_cast<double>(q.work.tensors.size()) * q.work.per_token);
  q.ranks = 64, q.tokens = 1'048'576;
  q.machine.between = machine_named(machine).between;
  return q;
}

std::string in_s(Seconds time) { return fmt::format("{:.2f} s", time.count()); }

std::string mfu_of(const StepQuestion& q, Seconds step) { return percent(utilisation(q, step)).shown; }

TEST(PlanStep, IsTheDecks) {
  const StepQuestion q = llama();
  ASSERT_EQ(q.work.parameters(), 6'738'149'376);
  EXPECT_EQ(fmt::format("{:.4e}", q.work.per_token.value() * 1'048'576), "4.9148e+16");
  const StepPlan plan = predict(q);
  EXPECT_EQ(in_s(plan.compute), "1.64 s");
  EXPECT_EQ(in_s(plan.all_reduce), "0.53 s");
  EXPECT_EQ(in_s(plan.waiting()), "2.17 s");
  EXPECT_EQ(mfu_of(q, plan.waiting()), "35.7 %");
  EXPECT_EQ(in_s(plan.bound()), "1.64 s");
  EXPECT_EQ(mfu_of(q, plan.bound()), "47.3 %");
}

TEST(PlanStep, IsTheDecksOverAWideAreaNetwork) {
  const StepQuestion q = llama("wan-100gbe");
  const StepPlan plan = predict(q);
  EXPECT_EQ(in_s(plan.all_reduce), "2.12 s");
  EXPECT_EQ(in_s(plan.waiting()), "3.77 s");
  EXPECT_EQ(mfu_of(q, plan.waiting()), "20.6 %");
  EXPECT_EQ(in_s(plan.bound()), "2.12 s");
  EXPECT_EQ(mfu_of(q, plan.bound()), "36.6 %");
  EXPECT_THAT(plan_step(q).notes, Contains(HasSubstr("no overlap can hide it")));
  EXPECT_THAT(plan_step(llama()).notes, Not(Contains(HasSubstr("no overlap can hide it"))));
}

// Two tensors of 1000 bytes on two ranks with a token each, at 0.5 MFLOP/s: forward 5 ms, then 10 ms for each tensor.
// Alpha 1 ms, a byte in 1 us: a bucket takes 2 (1 ms + 500 us), both at once 3.5 ms, one all-reduce 4 ms, the control
// record 1 ms + 40 us.
StepQuestion two_tensors() {
  StepQuestion q;
  q.work = {"two tensors", {250, 250}, {Flops(5000), Flops(5000)}, Flops(12'500)};
  q.machine.inside =
      q.machine.between = {Seconds(1e-3), Seconds(0), cost::SecondsPerByte(1e-6), cost::SecondsPerByte(0), "test"};
  q.machine.device.peaks = {{"fp32", FlopRate(1e6)}};
  q.machine.source = "a test";
  q.type = "fp32", q.efficiency = 0.5, q.ranks = 2, q.tokens = 2, q.gradient = Bytes(4);
  q.sync = {Bytes(1000), Bytes(1000), Bytes(1 << 20), 2};
  return q;
}

TEST(Predict, IsWhatAHandComputes) {
  const StepPlan plan = predict(two_tensors());
  EXPECT_NEAR(plan.compute.count(), 25e-3, 1e-12);
  EXPECT_NEAR(plan.all_reduce.count(), 4e-3, 1e-12);
  EXPECT_NEAR(plan.waiting().count(), 29e-3, 1e-12);
  EXPECT_NEAR(plan.bound().count(), 25e-3, 1e-12);
  ASSERT_EQ(plan.overlapped.buckets.size(), 2U);
  EXPECT_NEAR(plan.overlapped.buckets[0].start.count(), 15e-3, 1e-12);
  EXPECT_NEAR(plan.overlapped.buckets[0].end.count(), 18e-3, 1e-12);
  EXPECT_NEAR(plan.overlapped.buckets[1].end.count(), 28e-3, 1e-12);
  EXPECT_NEAR(plan.overlapped.step.count(), 28e-3 + 1.04e-3, 1e-12);
  EXPECT_NEAR(plan.blocking.buckets[0].start.count(), 25e-3, 1e-12);
  EXPECT_NEAR(plan.blocking.step.count(), 28.5e-3 + 1.04e-3, 1e-12);
}

// Halves of 2000 bytes take 2 ms: once for gradients, once for weights, twice at stage 3. 32 of 500 values with their
// positions take 1.256 ms.
TEST(Predict, SendsWhatTheStageAndTheCompressionSend) {
  StepQuestion q = two_tensors();
  q.work.layers = {0, 1};
  for (const auto& [stage, milliseconds] : {std::pair{0, 4.0}, {1, 4.0}, {2, 4.0}, {3, 6.0}}) {
    q.stage = stage;
    EXPECT_NEAR(predict(q).all_reduce.count(), milliseconds * 1e-3, 1e-12) << stage;
    EXPECT_LE(predict(q).overlapped.step, predict(q).blocking.step) << stage;
    EXPECT_EQ(predict(q).overlapped.buckets.size(), 2U) << stage;
  }
  q.stage = 0, q.sync.compression = {schedule::Compression::Kind::top_k, 16};
  EXPECT_NEAR(predict(q).all_reduce.count(), 1.256e-3, 1e-12);
  q.sync.compression = {schedule::Compression::Kind::bfloat16, 1};
  EXPECT_NEAR(predict(q).all_reduce.count(), 3e-3, 1e-12);
  q.gradient = Bytes(2);
  EXPECT_THROW(predict(q), InputError);
}

TEST(Predict, IsTheEnginesOwnPrediction) {
  cost::StepInput input;
  input.profile.backward_begins = Seconds(5e-3), input.profile.backward_ends = Seconds(25e-3);
  input.profile.ready = {Seconds(15e-3), Seconds(25e-3)};
  input.tensors = {250, 250}, input.world = 2, input.spare_core = true;
  input.sync = two_tensors().sync, input.network = two_tensors().machine.inside;
  const StepPlan plan = predict(two_tensors());
  for (const auto& [driver, planned] :
       {std::pair{cost::Driver::blocking, plan.blocking}, std::pair{cost::Driver::thread, plan.overlapped}}) {
    input.driver = driver;
    const cost::StepPrediction engine = cost::predict_step(input);
    EXPECT_DOUBLE_EQ(planned.step.count(), engine.step.count());
    EXPECT_DOUBLE_EQ(planned.exposed.count(), engine.exposed.count());
  }
}

// A rank of three has a third of the tokens, or one more.
TEST(Predict, IsOfTheRankWithMostTokens) {
  StepQuestion q = two_tensors();
  q.ranks = 3, q.tokens = 4;
  EXPECT_NEAR(predict(q).compute.count(), 50e-3, 1e-12);
}

TEST(Predict, OfOneRankIsItsComputing) {
  StepQuestion q = two_tensors();
  q.ranks = 1, q.tokens = 1;
  const StepPlan plan = predict(q);
  EXPECT_EQ(plan.all_reduce, Seconds(0));
  EXPECT_NEAR(plan.overlapped.step.count(), 25e-3, 1e-12);
  EXPECT_NEAR(plan.blocking.step.count(), 25e-3, 1e-12);
}

TEST(Utilisation, CountsRecomputationForTheHardwareOnly) {
  StepQuestion q = two_tensors();
  const Seconds step = predict(q).waiting();
  EXPECT_DOUBLE_EQ(utilisation(q, step), 2 * 12'500 / (2 * 1e6 * 29e-3));
  EXPECT_EQ(utilisation(q, step, true), utilisation(q, step));
  StepQuestion again = q;
  again.work.recomputed_per_token = Flops(5000), again.work.backward[0] += Flops(5000);
  EXPECT_NEAR(predict(again).compute.count(), 35e-3, 1e-12);
  EXPECT_EQ(utilisation(again, step), utilisation(q, step));
  EXPECT_DOUBLE_EQ(utilisation(again, step, true), 1.4 * utilisation(q, step));
}

TEST(PlanStep, WithRecomputationIsSlowerAndDoesMore) {
  StepQuestion plain = llama(), again = llama();
  plain.work = work_of(config("llama-7b")), again.work = work_of(config("llama-7b"), Recomputation::blocks);
  const Answer once = plan_step(plain), twice = plan_step(again);
  const auto of = [](const Answer& answer, const char* column) {
    return value_of(cell_of(table_of(answer, "step"), {"bound: perfectly overlapped"}, column));
  };
  EXPECT_GT(of(twice, "step_seconds"), 1.3 * of(once, "step_seconds"));
  EXPECT_LT(of(twice, "mfu"), of(once, "mfu"));
  EXPECT_EQ(of(once, "hfu"), of(once, "mfu"));
  EXPECT_NEAR(of(twice, "hfu"), 0.473, 1e-9);  // the efficiency: all that is done, at the rate at which it is done
}

TEST(PlanStep, ShowsEveryWayToSendAndTheTimeline) {
  const Answer answer = plan_step(two_tensors());
  const Table& table = table_of(answer, "step");
  const auto shown = [&](const char* row, const char* column) { return cell_of(table, {row}, column).shown; };
  EXPECT_EQ(shown("waiting for one all-reduce", "step_seconds"), "29 ms");
  EXPECT_EQ(shown("waiting for one all-reduce", "exposed_seconds"), "4 ms");
  EXPECT_EQ(shown("waiting for buckets", "step_seconds"), "29.54 ms");
  EXPECT_EQ(shown("overlapped", "step_seconds"), "29.04 ms");
  EXPECT_EQ(shown("overlapped", "exposed_seconds"), "4.04 ms");
  EXPECT_EQ(shown("bound: perfectly overlapped", "step_seconds"), "25 ms");
  EXPECT_EQ(shown("bound: perfectly overlapped", "mfu"), "50.0 %");
  EXPECT_EQ(shown("overlapped", "tokens_per_second"), "69");
  EXPECT_THAT(table.drawing, HasSubstr("compute |fffffffffffbbbbb"));
  EXPECT_THAT(table.drawing, HasSubstr(" 111111                222222 "));
  EXPECT_THAT(answer.notes, Contains(HasSubstr("2 buckets, cap 1 kB, by event simulation")));
  EXPECT_EQ(answer.explanations.front().result, "25 ms");
}

// A profile whose sums all end before backward does, and one in which nothing can be hidden.
TEST(PlanProfiledStep, HidesAllOrNothing) {
  cost::StepInput input = step_input(two_tensors(), cost::Driver::thread);
  input.profile.backward_ends = Seconds(30e-3);
  const auto of = [](const Answer& answer, std::size_t column) {
    return value_of(table_of(answer, "step").rows.at(0).at(column));
  };
  const Answer hidden = plan_profiled_step(input, "a profile");
  EXPECT_NEAR(of(hidden, 4), 0, 1e-12);
  EXPECT_NEAR(of(hidden, 7), 30e-3 + 1.04e-3, 1e-12);
  input.profile.ready = {Seconds(30e-3), Seconds(30e-3)};
  const Answer exposed = plan_profiled_step(input, "a profile");
  EXPECT_NEAR(of(exposed, 4), 3.5e-3, 1e-12);
  EXPECT_NEAR(of(exposed, 7), 33.5e-3 + 1.04e-3, 1e-12);
}

TEST(PlanBucket, DrawsTheCurveAndNamesTheCheapest) {
  StepQuestion q = two_tensors();
  q.work.tensors = {50'000, 50'000, 50'000, 50'000};
  q.work.backward = {Flops(5000), Flops(5000), Flops(5000), Flops(5000)}, q.work.per_token = Flops(30'000);
  q.sync.first_bucket = Bytes(1 << 20);
  const Answer answer = plan_bucket(step_input(q, cost::Driver::thread), "four tensors");
  const Table& table = table_of(answer, "bucket");
  double least = 1e9;
  std::string cheapest;
  int marked = 0;
  for (const auto& row : table.rows) {
    if (value_of(row[2]) < least) least = value_of(row[2]), cheapest = row[4].shown;
    if (row[4].shown == "cheapest") ++marked;
    EXPECT_FALSE(row[3].shown.empty());
  }
  EXPECT_EQ(cheapest, "cheapest");
  EXPECT_EQ(marked, 1);
  EXPECT_EQ(table.rows.back()[1].shown, "1");
  EXPECT_GT(table.rows.size(), 1U);
}

TEST(NetworkOf, FillsNodesOneAfterTheOther) {
  const cost::Machine h100 = machine_named("h100");
  const cost::Network network = network_of(h100, 12);
  EXPECT_EQ(network.nodes(), 2);
  EXPECT_EQ(network.node_of(7), 0);
  EXPECT_EQ(network.node_of(8), 1);
  EXPECT_EQ(network.ring_link().alpha, h100.between.alpha);
  EXPECT_EQ(network_of(h100, 8).ring_link().alpha, h100.inside.alpha);
}

TEST(NetworkOf, TakesTheLinkBetweenNodesWhereNothingSaysThatRanksShareOne) {
  cost::Machine machine = machine_named("h100");
  machine.device.ranks_per_node = 0;
  EXPECT_EQ(network_of(machine, 2).ring_link().alpha, machine.between.alpha);
  EXPECT_EQ(network_of(machine, 1).ring_link().alpha, machine.inside.alpha);
}

TEST(RateOf, IsThePeakByTypeOrWhatWasMeasured) {
  StepQuestion q = two_tensors();
  EXPECT_EQ(rate_of(q).peak, FlopRate(1e6));
  EXPECT_EQ(rate_of(q).efficiency, 0.5);
  q.machine.device.efficiency = 0.25, q.efficiency = 0;
  EXPECT_EQ(rate_of(q).efficiency, 0.25);
  q.machine.device.peaks.clear(), q.machine.compute = FlopRate(5e5);
  EXPECT_EQ(rate_of(q).peak, FlopRate(5e5));
  EXPECT_EQ(rate_of(q).efficiency, 1);
}

void expect_refused(const StepQuestion& q, const char* message) {
  EXPECT_THAT([&] { plan_step(q); }, ThrowsMessage<InputError>(HasSubstr(message)));
}

TEST(PlanStep, RefusesWhatMakesNoSenseAndSaysWhatToTry) {
  StepQuestion q = two_tensors();
  q.machine_name = "box.toml";
  q.type = "bf16";
  expect_refused(q,
                 "box.toml: no peak_bf16 in [device] (how long computing takes would be unknown). Choose --type "
                 "fp32, or give --peak.");
  q.machine.device.peaks.clear();
  expect_refused(q, "Add one to the machine file, or give --peak and --efficiency.");
  q = two_tensors(), q.machine_name = "box.toml", q.efficiency = 0;
  expect_refused(q, "box.toml: no efficiency in [device]");
  expect_refused(q, "Give --efficiency, say 0.4, or calibrate.");
  q = two_tensors(), q.ranks = 0;
  expect_refused(q, "0 ranks compute nothing. Give --ranks 1 or more.");
  q = two_tensors(), q.tokens = 0;
  expect_refused(q, "a step of 0 tokens is none. Give --tokens, over all ranks.");
}

// Whoever asks, and not only plan_step.
TEST(StepInput, RefusesNegativeTokensAndNoRanks) {
  StepQuestion q = two_tensors();
  q.tokens = -1;
  EXPECT_THROW(step_input(q, cost::Driver::thread), InputError);
  q = two_tensors(), q.ranks = 0;
  EXPECT_THROW(step_input(q, cost::Driver::thread), InputError);
}

}  // namespace
}  // namespace annulet::plan
