#include "annulet/plan/step.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "annulet/base/error.hpp"
#include "annulet/cost/bucket_cap.hpp"
#include "annulet/cost/closed_form.hpp"
#include "timeline.hpp"

namespace annulet::plan {
namespace {

constexpr int kCurveWidth = 40;

[[noreturn]] void refuse_type(const StepQuestion& q) {
  std::vector<std::string> types;
  for (const auto& [type, peak] : q.machine.device.peaks) types.push_back(type);
  throw InputError({fmt::format("{}: no peak_{} in [device]", q.machine_text(), q.type),
                    "how long computing takes would be unknown",
                    types.empty() ? "Add one to the machine file, or give --peak and --efficiency"
                                  : fmt::format("Choose --type {}, or give --peak", fmt::join(types, " or "))});
}

Elements largest_share(const StepQuestion& q) { return (q.tokens + q.ranks - 1) / q.ranks; }

Seconds time_of(Flops per_token, const StepQuestion& q) {
  const Rate rate = rate_of(q);
  return Seconds(per_token.value() * static_cast<double>(largest_share(q)) / (rate.peak.value() * rate.efficiency));
}

Bytes gradients(const StepQuestion& q) { return q.gradient * q.work.parameters(); }

// All gradients in one exchange and, at stages of ZeRO, all weights as often as they are gathered.
Seconds communication(const StepQuestion& q) {
  const Elements all = q.work.parameters();
  const std::vector<schedule::Bucket> whole{{{0, all}, 0, q.work.tensors.size()}};
  auto exchanges =
      schedule::gradient_exchanges({whole, q.work.tensors, q.gradient, q.stage}, q.ranks, q.sync.compression);
  for (int gathers = q.stage == 0 ? 0 : q.stage == 3 ? 2 : 1; gathers > 0; --gathers) {
    exchanges.push_back(schedule::weight_exchanges(whole, q.gradient).front());
  }
  Seconds time{0};
  for (const schedule::Exchange& e : exchanges) {
    time += cost::total_time({e.collective, schedule::Algorithm::ring, e.bytes(), q.ranks, e.element},
                             network_of(q.machine, q.ranks));
  }
  return time;
}

bool is_dense(const StepQuestion& q) {
  return q.stage == 0 && q.sync.compression.kind == schedule::Compression::Kind::none;
}

std::string inputs_of(const StepQuestion& q) {
  const Rate rate = rate_of(q);
  return fmt::format("{} parameters, {} FLOPs a token, {} tokens on {} ranks, peak {}, efficiency {:.4g}",
                     cell(q.work.parameters()).shown, q.work.per_token.value(), cell(q.tokens).shown, q.ranks,
                     to_text(rate.peak), rate.efficiency);
}

std::string exchange_text(const StepQuestion& q) {
  if (is_dense(q)) return "all-reduce";
  return fmt::format("ZeRO stage {}, compression {}", q.stage, schedule::to_text(q.sync.compression));
}

Cell with_thousands(double value) { return {value, cell(static_cast<std::int64_t>(std::llround(value))).shown}; }

std::string buckets_text(std::size_t count, Bytes cap) {
  return fmt::format("{} bucket{}, cap {}", count, count == 1 ? "" : "s", binary(cap));
}

std::vector<Cell> row_of(const StepQuestion& q, const char* name, Seconds step, Seconds exposed) {
  return {cell(name),
          cell(step),
          cell(exposed),
          percent(utilisation(q, step)),
          percent(utilisation(q, step, true)),
          with_thousands(static_cast<double>(q.tokens) / step.count())};
}

std::string_view method(const cost::StepInput& input) {
  if (input.world == 1) return "nobody: one rank sends nothing";
  return cost::can_simulate(input) ? "event simulation" : "the ring's closed form, bucket after bucket";
}

void explain(Answer& answer, const StepQuestion& q, const StepPlan& plan) {
  const cost::Network network = network_of(q.machine, q.ranks);
  const std::string inputs = inputs_of(q);
  answer.explanations = {
      {"compute", "FLOPs a token x tokens / ranks / (peak x efficiency)", inputs, to_text(plan.compute)},
      {exchange_text(q), is_dense(q) ? "2 (p-1) alpha + 2 (p-1)/p M beta" : "(p-1) (alpha + chunk beta), each exchange",
       fmt::format("p = {}, M = {}, {}", q.ranks, to_text(gradients(q)), cost::to_text(network.ring_link())),
       to_text(plan.all_reduce)},
      {"waiting", "compute + all-reduce", "the two above", to_text(plan.waiting())},
      {"overlapped",
       fmt::format("backward and buckets by {} (cost::predict_step)", method(step_input(q, cost::Driver::thread))),
       buckets_text(plan.overlapped.buckets.size(), q.sync.bucket), to_text(plan.overlapped.step)},
      {"bound", "max(compute, all-reduce)", "the two above", to_text(plan.bound())},
      {"MFU, waiting", "FLOPs a token x tokens / (ranks x peak x time)", inputs,
       percent(utilisation(q, plan.waiting())).shown}};
}

}  // namespace

Elements Work::parameters() const { return std::accumulate(tensors.begin(), tensors.end(), Elements{0}); }

void require_sense(const StepQuestion& q) {
  const auto refuse = [](std::string what, std::string hint) {
    throw InputError({std::move(what), "", std::move(hint)});
  };
  if (q.ranks < 1) refuse(fmt::format("{} ranks compute nothing", q.ranks), "Give --ranks 1 or more");
  if (q.sync.compression.kind == schedule::Compression::Kind::bfloat16 && q.gradient <= Bytes(2)) {
    refuse(fmt::format("gradients of {} bytes are as short as bfloat16", q.gradient.value()),
           "Give --gradient-bytes 4");
  }
  if (q.tokens < 1) refuse(fmt::format("a step of {} tokens is none", q.tokens), "Give --tokens, over all ranks");
}

Rate rate_of(const StepQuestion& q) {
  const cost::Device& device = q.machine.device;
  const auto peak = device.peaks.find(q.type);
  if (peak == device.peaks.end()) {
    if (q.machine.compute.value() > 0 && device.peaks.empty()) {  // calibrated: what products really reach
      return {q.machine.compute, q.efficiency > 0 ? q.efficiency : 1.0};
    }
    refuse_type(q);
  }
  const double efficiency = q.efficiency > 0 ? q.efficiency : device.efficiency;
  if (efficiency > 0) return {peak->second, efficiency};
  throw InputError({fmt::format("{}: no efficiency in [device]", q.machine_text()),
                    "no model reaches the peak, and how much of it decides the time",
                    "Give --efficiency, say 0.4, or calibrate"});
}

Work work_of(const Architecture& architecture, Recomputation recomputation, const FlopsOptions& options) {
  Work work;
  work.model = architecture.name;
  work.backward = backward_per_tensor(architecture, recomputation, options);
  work.per_token = flops_per_token(architecture, options);
  work.recomputed_per_token = recomputation_per_token(architecture, recomputation, options);
  for (const ModelTensor& tensor : tensors(architecture)) work.tensors.push_back(tensor.elements);
  work.layers = layers(architecture);
  if (architecture.tied) work.tied_layer = work.layers.back();
  return work;
}

cost::Network network_of(const cost::Machine& machine, int ranks) {
  const int per_node = machine.device.ranks_per_node;
  if (per_node == 0) return ranks > 1 ? cost::Network(machine.between) : cost::Network(machine.inside);
  std::vector<int> node;
  for (int r = 0; r < ranks; ++r) node.push_back(r / per_node);
  return machine.network(std::move(node));
}

cost::StepInput step_input(const StepQuestion& q, cost::Driver driver) {
  require_sense(q);
  cost::StepInput input;
  cost::StepProfile& profile = input.profile;
  Flops backward{0};
  for (const Flops flops : q.work.backward) backward += flops;
  profile.backward_begins = time_of(q.work.per_token + q.work.recomputed_per_token - backward, q);
  Flops done{0};
  for (const Flops flops : q.work.backward) {
    done += flops;
    profile.ready.push_back(profile.backward_begins + time_of(done, q));
  }
  profile.backward_ends = profile.backward_begins + time_of(backward, q);
  input.tensors = q.work.tensors, input.element = q.gradient, input.sync = q.sync;
  input.stage = q.stage, input.layers = q.work.layers, input.tied_layer = q.work.tied_layer;
  input.network = network_of(q.machine, q.ranks), input.world = q.ranks;
  input.driver = driver, input.spare_core = true;
  return input;
}

StepPlan predict(const StepQuestion& q) {
  require_sense(q);
  StepPlan plan;
  plan.compute = time_of(q.work.per_token + q.work.recomputed_per_token, q);
  plan.all_reduce = is_dense(q)
                        ? cost::ring_all_reduce_time(gradients(q), q.ranks, network_of(q.machine, q.ranks).ring_link())
                        : communication(q);
  plan.blocking = cost::predict_step(step_input(q, cost::Driver::blocking));
  plan.overlapped = cost::predict_step(step_input(q, cost::Driver::thread));
  return plan;
}

double utilisation(const StepQuestion& q, Seconds step, bool recomputed) {
  const Flops extra = recomputed ? q.work.recomputed_per_token : Flops(0);
  const Flops all = static_cast<double>(q.tokens) * (q.work.per_token + extra);
  return all.value() / (q.ranks * rate_of(q).peak.value() * step.count());
}

Answer plan_step(const StepQuestion& q) {
  const StepPlan plan = predict(q);
  const cost::Network network = network_of(q.machine, q.ranks);
  const Rate rate = rate_of(q);
  Answer answer;
  Table table{"step",
              fmt::format("{} on {} ranks, {} tokens a step, {}", q.work.model, cell(std::int64_t{q.ranks}).shown,
                          cell(q.tokens).shown, q.machine.source),
              {{"", "mode"},
               {"step", "step_seconds"},
               {"exposed", "exposed_seconds"},
               {"MFU", "mfu"},
               {"HFU", "hfu"},
               {"tokens/s", "tokens_per_second"}},
              {}};
  const auto rest = [&](Seconds step) { return step - plan.compute; };
  table.rows = {row_of(q, is_dense(q) ? "waiting for one all-reduce" : "waiting for all that is sent", plan.waiting(),
                       plan.all_reduce),
                row_of(q, "waiting for buckets", plan.blocking.step, rest(plan.blocking.step)),
                row_of(q, "overlapped", plan.overlapped.step, rest(plan.overlapped.step)),
                row_of(q, "bound: perfectly overlapped", plan.bound(), rest(plan.bound()))};
  table.drawing = '\n' + timeline(plan.overlapped);
  answer.tables.push_back(std::move(table));
  const cost::StepInput input = step_input(q, cost::Driver::thread);
  answer.notes = {fmt::format("compute {}: {:.6g} FLOPs at {:.4g} of {} ({})", to_text(plan.compute),
                              q.work.per_token.value() * static_cast<double>(q.tokens), rate.efficiency,
                              to_text(rate.peak), q.type),
                  fmt::format("{} of {}: {}; {}", exchange_text(q), to_text(gradients(q)), to_text(plan.all_reduce),
                              cost::to_text(network.ring_link())),
                  fmt::format("{}, by {}", buckets_text(plan.overlapped.buckets.size(), q.sync.bucket), method(input))};
  if (plan.all_reduce > plan.compute) {
    answer.notes.push_back("communication takes longer than computation: no overlap can hide it");
  }
  explain(answer, q, plan);
  return answer;
}

Answer plan_profiled_step(const cost::StepInput& input, const std::string& what) {
  const cost::StepPrediction p = cost::predict_step(input);
  Answer answer;
  answer.tables.push_back({"step",
                           what,
                           {{"backward begins", "backward_begins"},
                            {"backward ends", "backward_ends"},
                            {"for weights", "weights_seconds"},
                            {"for room", "room_seconds"},
                            {"exposed", "exposed_seconds"},
                            {"control", "control_seconds"},
                            {"optimiser", "optimizer_seconds"},
                            {"step", "step_seconds"}},
                           {{cell(p.backward_begins), cell(p.backward_ends), cell(p.weights), cell(p.room),
                             cell(p.exposed), cell(p.control), cell(p.optimizer), cell(p.step)}},
                           '\n' + timeline(p)});
  answer.notes = {fmt::format("{}; {}", buckets_text(p.buckets.size(), input.sync.bucket),
                              cost::to_text(input.network.ring_link()))};
  if (input.world > 1 && input.network.ring_link().moving.value() == 0) {
    answer.notes.push_back(
        "the machine file does not say how fast a core moves bytes (`moving`): taken from the profile, while a run "
        "measures it between its ranks and may predict otherwise");
  }
  answer.explanations = {
      {"step", "backward's end + exposed + control record + optimiser; cost::predict_step", what, to_text(p.step)}};
  return answer;
}

Answer plan_bucket(const cost::StepInput& input, const std::string& what) {
  const cost::BucketCapChoice choice = cost::cheapest_bucket_cap(input);
  const auto by_step = [](const cost::CapPrediction& a, const cost::CapPrediction& b) { return a.step < b.step; };
  const auto [best, worst] = std::ranges::minmax_element(choice.curve, by_step);
  Answer answer;
  Table table{"bucket",
              what,
              {{"cap", "cap_bytes"}, {"buckets", "buckets"}, {"step", "step_seconds"}, {"", "curve"}, {"", "mark"}},
              {}};
  for (const cost::CapPrediction& point : choice.curve) {
    const double part = worst->step > best->step ? (point.step - best->step) / (worst->step - best->step) : 0;
    const auto length = static_cast<std::size_t>(1 + std::lround(part * (kCurveWidth - 1)));
    table.rows.push_back({{point.cap.value(), binary(point.cap)},
                          cell(static_cast<std::int64_t>(point.buckets)),
                          cell(point.step),
                          cell(std::string(length, '#')),
                          cell(&point == &*best          ? "cheapest"
                               : point.cap == choice.cap ? "auto"
                                                         : "")});
  }
  answer.tables.push_back(std::move(table));
  answer.notes = {
      fmt::format("bars from {} to {}; auto, what training takes unless told: {}, the largest cap within 1 % "
                  "of the cheapest step",
                  to_text(best->step), to_text(worst->step), binary(choice.cap))};
  answer.explanations = {{"step for a cap", "cost::predict_step with buckets of at most that size", what,
                          fmt::format("{} at {}", to_text(best->step), binary(best->cap))}};
  return answer;
}

}  // namespace annulet::plan
