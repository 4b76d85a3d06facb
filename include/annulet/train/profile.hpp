#pragma once
// What computing costs one rank, measured by a run in which nobody else is waited for, and used to predict runs with
// more ranks before they begin. Medians over sampled steps, the first five left out; one clock read per tensor.
#include <optional>
#include <string>
#include <vector>

#include "annulet/cost/step.hpp"
#include "annulet/nn/layout.hpp"
#include "annulet/parallel/gradient_sync.hpp"
#include "annulet/train/config.hpp"

namespace annulet::train {

struct StepRecord;

// What was computed: a profile serves only a run that computes the same on each rank.
struct Workload {
  std::string model;            // its one-line description
  std::string type;             // float or double
  std::string optimizer;        // its kind
  Elements batch_per_rank = 0;  // of the largest rank
  Elements accumulate = 1;
  std::vector<std::string> tensors;  // names, in layout order
  std::vector<Elements> sizes;       // [tensor]
  std::vector<std::size_t> layers;   // [tensor]
  std::optional<std::size_t> tied_layer;

  friend bool operator==(const Workload&, const Workload&) = default;
};

Workload workload(const Config& config, std::string model, const nn::Layout& layout, Elements batch_per_rank);

struct Profile {
  Workload workload;
  cost::StepProfile step;
  long steps = 0;  // sampled
};

// The step that a run of `config` (its bucket caps decided) makes with gradients of `element` bytes each, as
// cost::predict_step wants it; who takes part is left to the caller: network, world, driver and spare core. Throws
// InputError where the profile does not say enough: of accumulated micro-batches it knows the last one only.
cost::StepInput profiled_step(const Config& config, const Profile& profile, Bytes element);

// Throws InputError naming what differs and how to make a profile that fits.
void require_fitting(const Profile& profile, const Workload& wanted);

class ProfileRecorder {
 public:
  // Room for `most` steps.
  ProfileRecorder(std::size_t tensors, Bytes gradients, long most);

  // To be filled by each step before it is added.
  parallel::GradientInstants& instants() { return instants_; }

  struct Moments {
    Instant began, backward_began, backward_ended;
  };
  void add(const StepRecord& record, const Moments& moments);

  // Nothing sampled gives a profile of zeros. Measures what moving and adding bytes costs.
  cost::StepProfile result() const;

  long steps() const { return static_cast<long>(rows_.size() / width()); }

 private:
  static constexpr std::size_t kHead = 5;  // backward begins, ends; norm, rest, checking
  std::size_t width() const { return kHead + instants_.final.size(); }
  Seconds middle(std::size_t column) const;

  parallel::GradientInstants instants_;
  Bytes gradients_;
  std::vector<Seconds> rows_;  // [step, column]: the head, then when each tensor was final
};

}  // namespace annulet::train
