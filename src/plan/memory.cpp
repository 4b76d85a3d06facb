#include "annulet/plan/memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "annulet/base/error.hpp"
#include "annulet/schedule/layer_uses.hpp"

namespace annulet::plan {
namespace {

constexpr auto kGradientTurns = static_cast<Elements>(schedule::kGradientTurns);
constexpr auto kLayerTurns = static_cast<Elements>(schedule::kLayerTurns);

Elements shard(Elements parameters, int ranks) { return (parameters + ranks - 1) / ranks; }

// (d-1)/d of `bytes`: what a rank sends in a ring's reduce-scatter or all-gather.
Bytes passed_on(Bytes bytes, int ranks) {
  return Bytes(static_cast<std::int64_t>(bytes.as_double() * (ranks - 1) / ranks + 0.5));
}

constexpr std::array<const char*, 4> kSentFormula{"(d-1)/d (g + w) P", "(d-1)/d (g + w) P", "(d-1)/d (k g + w) P",
                                                  "(d-1)/d k (g + 2 w) P"};
constexpr std::array<const char*, 4> kStateFormula{"(w + g + K) P", "(w + g) P + K P / d", "w P + (g + K) P / d",
                                                   "(w + g + K) P / d"};

Bytes activations(const MemoryQuestion& q) { return q.recompute ? q.recomputed_activations : q.activations; }

Cell fits(const MemoryQuestion& q, Bytes needed) {
  if (q.device == Bytes(0)) return cell();
  return {needed <= q.device, needed <= q.device ? "yes" : "no"};
}

std::string inputs(const MemoryQuestion& q) {
  return fmt::format("P = {}, d = {}, w = {} B, g = {} B, K = {} B, k = {}", cell(q.parameters).shown, q.ranks,
                     q.bytes.weight, q.bytes.gradient, q.bytes.optimizer, q.micro_batches);
}

}  // namespace

StageMemory stage_memory(Elements parameters, int ranks, int stage, StateBytes bytes, int micro_batches) {
  ANNULET_EXPECTS(stage >= 0 && stage <= 3 && ranks >= 1 && micro_batches >= 1, "a stage of ZeRO on at least one rank");
  const Elements part = shard(parameters, ranks);
  const Bytes weights(bytes.weight * parameters), gradients(bytes.gradient * parameters);
  StageMemory memory{stage, Bytes(bytes.weight * (stage == 3 ? part : parameters)),
                     Bytes(bytes.gradient * (stage >= 2 ? part : parameters)),
                     Bytes(bytes.optimizer * (stage >= 1 ? part : parameters)), Bytes(0)};
  const std::int64_t k = micro_batches;
  memory.sent = stage == 3   ? passed_on(k * (gradients + 2 * weights), ranks)
                : stage == 2 ? passed_on(k * gradients + weights, ranks)
                             : passed_on(gradients + weights, ranks);
  return memory;
}

Elements largest_layer(const Architecture& architecture) {
  std::map<Elements, Elements> blocks;
  Elements largest = 0;
  for (const ModelTensor& tensor : tensors(architecture)) {
    if (architecture.tied && tensor.part == Part::embedding) continue;
    largest = std::max(largest, tensor.block < 0 ? tensor.elements : blocks[tensor.block] += tensor.elements);
  }
  return largest;
}

Elements tied_layer(const Architecture& architecture) {
  return architecture.tied ? parameters(architecture).embedding : 0;
}

Bytes buckets_in_flight(const MemoryQuestion& q, int stage) {
  if (stage < 2) return Bytes(0);
  const auto at_most = [&](std::int64_t bytes, Elements n) { return Bytes(bytes * std::min(n, q.parameters)); };
  const Elements bucket = stage == 2 ? q.bucket.value() / q.bytes.gradient : q.largest_layer;
  const Bytes gradients = at_most(q.bytes.gradient, kGradientTurns * bucket + q.tied_layer);
  if (stage == 2) return gradients;
  return gradients + at_most(q.bytes.weight, kLayerTurns * q.largest_layer + q.tied_layer);
}

Answer plan_memory(const MemoryQuestion& q) {
  Answer answer;
  Table table{
      "memory",
      fmt::format("{}: {} parameters on {} ranks; {} + {} + {} bytes of weight, gradient, optimiser each; GB "
                  "a rank",
                  q.model, cell(q.parameters).shown, q.ranks, q.bytes.weight, q.bytes.gradient, q.bytes.optimizer),
      {{"stage", "stage"},
       {"weights", "weights_bytes"},
       {"gradients", "gradients_bytes"},
       {"optimiser", "optimizer_bytes"},
       {"states", "states_bytes"},
       {"sent a step", "sent_bytes"},
       {"buckets", "buckets_bytes"},
       {"activations", "activations_bytes"},
       {"recomputed", "recomputed_activations_bytes"},
       {"needed", "needed_bytes"},
       {"fits", "fits"}},
      {}};
  const bool known = q.activations > Bytes(0);
  for (int stage = 0; stage <= 3; ++stage) {
    const StageMemory m = stage_memory(q.parameters, q.ranks, stage, q.bytes, q.micro_batches);
    const Bytes buckets = buckets_in_flight(q, stage), needed = m.total() + buckets + activations(q);
    table.rows.push_back({cell(std::int64_t{stage}), gigabytes(m.weights), gigabytes(m.gradients),
                          gigabytes(m.optimizer), gigabytes(m.total()), gigabytes(m.sent),
                          stage == 3 && q.largest_layer == 0 ? cell() : gigabytes(buckets),
                          known ? gigabytes(q.activations) : cell(),
                          known ? gigabytes(q.recomputed_activations) : cell(), gigabytes(needed), fits(q, needed)});
    const auto s = static_cast<std::size_t>(stage);
    answer.explanations.push_back(
        {fmt::format("stage {}, states", stage), kStateFormula[s], inputs(q), gigabytes(m.total()).shown + " GB"});
    answer.explanations.push_back({fmt::format("stage {}, sent by a rank in a step", stage), kSentFormula[s], inputs(q),
                                   gigabytes(m.sent).shown + " GB"});
  }
  answer.tables.push_back(std::move(table));
  answer.notes.push_back(
      "buckets: what is held beside the states: stage 2 three gradient buckets, stage 3 the gradients of three layers "
      "and "
      "the gathered weights of two, both also the tied embedding's; stages 0 and 1 work in place");
  if (q.largest_layer == 0)
    answer.notes.push_back(
        "the size of a layer is not known: stage 3 needs the gradients of three and the weights of two besides");
  if (known) answer.notes.push_back("activations of a micro-batch: " + q.activations_formula);
  answer.notes.push_back(fmt::format("needed = states + buckets{}",
                                     known ? q.recompute ? " + activations recomputed" : " + activations" : ""));
  if (q.device > Bytes(0)) answer.notes.push_back(fmt::format("a rank's device has {}", to_text(q.device)));
  return answer;
}

}  // namespace annulet::plan
