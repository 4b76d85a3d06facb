#include "step_program.hpp"

#include <algorithm>
#include <numeric>

#include "annulet/base/error.hpp"
#include "annulet/schedule/layer_uses.hpp"

namespace annulet::cost {
namespace {

using Kind = Instruction::Kind;

std::vector<schedule::Bucket> buckets_of(const StepInput& input) {
  if (input.stage < 3) return schedule::gradient_buckets(input.tensors, input.element, input.sync);
  ANNULET_EXPECTS(input.layers.size() == input.tensors.size(), "stage 3 gathers layers, every tensor is in one");
  return schedule::layer_buckets(input.tensors, input.layers);
}

// When forward comes to a tensor, from the step's beginning.
Seconds forward_reaches(const StepProfile& profile, std::size_t tensor) {
  const Seconds backward = profile.backward_ends - profile.backward_begins;
  if (backward <= Seconds(0)) return Seconds(0);
  const double done = std::clamp((profile.ready[tensor] - profile.backward_begins) / backward, 0.0, 1.0);
  return (1 - done) * profile.backward_begins;
}

class ProgramBuilder {
 public:
  explicit ProgramBuilder(const StepInput& input)
      : input_(input),
        buckets_(buckets_of(input)),
        gradients_(schedule::gradient_exchanges({buckets_, input.tensors, input.element, input.stage}, input.world,
                                                input.sync.compression)),
        weights_(schedule::weight_exchanges(buckets_, input.element)) {
    if (input.stage >= 2) gradient_slots_ = schedule::gradient_slots(buckets_, tied(), schedule::kGradientTurns);
    occupants_.resize(gradient_slots_.sizes.size());
    if (input.stage < 3) return;
    uses_ = schedule::layer_uses(buckets_.size(), input.tied_layer);
    layer_slots_ = schedule::layer_slots(buckets_, uses_, input.tied_layer);
    gathered_.resize(layer_slots_.sizes.size());
  }

  StepProgram build() && {
    if (input_.stage == 1 || input_.stage == 2) update();
    program_.step_begins = program_.instructions.size();
    if (input_.stage < 3) {
      forward();
    } else {
      forward_by_layers();
    }
    program_.backward_begins = program_.instructions.size();
    backward();
    program_.backward_ends = program_.instructions.size();
    for (const std::size_t operation : program_.of_bucket) wait(operation);
    if (input_.stage == 0) program_.update = input_.profile.optimizer;
    if (input_.stage == 3) program_.update = input_.profile.optimizer / input_.world;
    return std::move(program_);
  }

 private:
  std::vector<bool> tied() const {
    std::vector<bool> tied(input_.tensors.size());
    for (std::size_t t = 0; t < input_.layers.size(); ++t) tied[t] = input_.layers[t] == input_.tied_layer;
    return tied;
  }

  void compute(Seconds work) {
    if (work > Seconds(0)) program_.instructions.push_back({Kind::compute, work});
  }
  void compute_until(Seconds& now, Seconds instant) {
    compute(instant - now);
    now = std::max(now, instant);
  }
  void wait(std::size_t operation) { program_.instructions.push_back({Kind::wait, Seconds(0), operation}); }
  std::size_t launch(const schedule::Exchange& exchange) {
    program_.operations.push_back(exchange);
    program_.instructions.push_back({Kind::launch, Seconds(0), program_.operations.size() - 1});
    return program_.operations.size() - 1;
  }

  // Each rank updates its part of every bucket.
  void update() {
    const Elements all = std::accumulate(input_.tensors.begin(), input_.tensors.end(), Elements{0});
    gathers_.resize(buckets_.size());
    for (std::size_t b = buckets_.size(); b-- > 0;) {
      const double share =
          static_cast<double>(buckets_[b].elements.count) / static_cast<double>(std::max<Elements>(1, all));
      compute(share * input_.profile.optimizer / input_.world);
      gathers_[b] = launch(weights_[b]);
    }
  }

  void forward() {
    Seconds now{0};
    for (std::size_t b = gathers_.size(); b-- > 0;) {
      compute_until(now, forward_reaches(input_.profile, last_of_layer(buckets_[b].end_tensor - 1)));
      wait(gathers_[b]);
    }
    compute_until(now, input_.profile.backward_begins);
  }

  // The last tensor of the same layer, where forward comes to it.
  std::size_t last_of_layer(std::size_t tensor) const {
    if (input_.layers.empty()) return tensor;
    while (tensor + 1 < input_.layers.size() && input_.layers[tensor + 1] == input_.layers[tensor]) ++tensor;
    return tensor;
  }

  void forward_by_layers() {
    Seconds now{0};
    gather_ahead();
    for (std::size_t use = 0; use < uses_.forward; ++use) {
      const std::size_t layer = uses_.layers[use];
      if (layer != input_.tied_layer) {
        compute_until(now, forward_reaches(input_.profile, buckets_[layer].end_tensor - 1));
        if (use > 0 && uses_.layers[use - 1] != input_.tied_layer) leave(use - 1);
      }
      wait(gathers_[use]);
    }
    compute_until(now, input_.profile.backward_begins);
    if (uses_.forward > 0) leave(uses_.forward - 1);
    if (input_.tied_layer) leave(0);
  }

  // Uses in their order, as far as there is room.
  void gather_ahead() {
    while (gathers_.size() < uses_.layers.size() && !gathered_[layer_slots_.of_use[gathers_.size()]]) {
      gathered_[layer_slots_.of_use[gathers_.size()]] = true;
      gathers_.push_back(launch(weights_[uses_.layers[gathers_.size()]]));
    }
  }

  void leave(std::size_t use) {
    gathered_[layer_slots_.of_use[use]] = false;
    gather_ahead();
  }

  void backward() {
    Seconds now = input_.profile.backward_begins;
    std::size_t use = uses_.forward;
    if (input_.stage == 3 && input_.tied_layer) wait(gathers_[use++]);
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      const bool reads = input_.stage == 3 && b != input_.tied_layer;
      if (reads) wait(gathers_[use]);
      wait_for_slot(b);
      const auto first = input_.profile.ready.begin() + static_cast<std::ptrdiff_t>(buckets_[b].first_tensor);
      const auto end = input_.profile.ready.begin() + static_cast<std::ptrdiff_t>(buckets_[b].end_tensor);
      compute_until(now, *std::max_element(first, end));
      compute(before_launch(input_.element * buckets_[b].elements.count));
      program_.of_bucket.push_back(launch(gradients_[b]));
      if (reads) leave(use++);
      if (input_.stage == 3 && b == 0 && input_.tied_layer) leave(uses_.forward);
    }
    compute_until(now, input_.profile.backward_ends);
  }

  // Until the bucket before it in its slot has been summed.
  void wait_for_slot(std::size_t bucket) {
    if (gradient_slots_.of_use.empty()) return;
    std::optional<std::size_t>& occupant = occupants_[gradient_slots_.of_use[bucket]];
    if (occupant) wait(program_.of_bucket[*occupant]);
    occupant = bucket;
  }

  // Looking for bad values, which a world of one does not, and choosing what is sent.
  Seconds before_launch(Bytes gradients) const {
    const bool sparse = input_.sync.compression.kind == schedule::Compression::Kind::top_k;
    return (input_.world > 1 ? input_.profile.check * gradients : Seconds(0)) +
           (sparse ? input_.profile.choosing * gradients : Seconds(0));
  }

  const StepInput& input_;
  std::vector<schedule::Bucket> buckets_;
  std::vector<schedule::Exchange> gradients_, weights_;  // [bucket]
  std::vector<std::size_t> gathers_;                     // [bucket], at stage 3 [use]: the operation
  schedule::Slots gradient_slots_, layer_slots_;
  std::vector<std::optional<std::size_t>> occupants_;  // [gradient slot] the last bucket in it
  schedule::LayerUses uses_;
  std::vector<bool> gathered_;  // [layer slot] somebody has it
  StepProgram program_;
};

}  // namespace

StepProgram step_program(const StepInput& input) {
  ANNULET_EXPECTS(input.stage >= 0 && input.stage < schedule::kZeroStages, "ZeRO has stages 0 to 3");
  return ProgramBuilder(input).build();
}

}  // namespace annulet::cost
