#include "annulet/train/profile.hpp"

#include <fmt/format.h>

#include "annulet/base/error.hpp"
#include "annulet/base/statistics.hpp"
#include "annulet/measure/calibrate.hpp"
#include "annulet/measure/memory.hpp"
#include "annulet/parallel/control.hpp"
#include "annulet/train/records.hpp"
#include "compression_pace.hpp"

namespace annulet::train {
namespace {

constexpr long kLeftOut = 5;  // steps in which caches and the allocator settle

void require_same(std::string_view what, const auto& profiled, const auto& wanted) {
  if (profiled == wanted) return;
  throw InputError(
      {fmt::format("the profile is of {} {}, this run has {}", what, profiled, wanted),
       "it says what a rank computes in a step, and that would be something else",
       "Run the same configuration on one rank with --record-profile and a batch of this run's samples per "
       "rank"});
}

}  // namespace

Workload workload(const Config& config, std::string model, const nn::Layout& layout, Elements batch_per_rank) {
  Workload workload{std::move(model), config.type, config.optimizer, batch_per_rank, config.accumulate, {}, {}, {}, {}};
  for (const nn::Tensor& tensor : layout.tensors()) {
    workload.tensors.push_back(tensor.name), workload.sizes.push_back(tensor.count);
    workload.layers.push_back(tensor.layer);
    if (tensor.tied) workload.tied_layer = tensor.layer;
  }
  return workload;
}

cost::StepInput profiled_step(const Config& config, const Profile& profile, Bytes element) {
  if (config.zero >= 2 && profile.workload.accumulate > 1) {
    throw InputError({fmt::format("a step of ZeRO stage {} with {} micro-batches cannot be predicted", config.zero,
                                  profile.workload.accumulate),
                      "each of them communicates, and a profile knows when gradients of the last one are final",
                      "Choose --accumulate 1, or --zero 0 or 1"});
  }
  cost::StepInput input;
  input.profile = profile.step;
  input.stage = config.zero;
  input.layers = profile.workload.layers, input.tied_layer = profile.workload.tied_layer;
  input.tensors = profile.workload.sizes;
  input.element = element;
  input.sync = sync_options(config);
  input.control = Bytes(sizeof(parallel::ControlRecord));
  return input;
}

void require_fitting(const Profile& profile, const Workload& wanted) {
  const Workload& profiled = profile.workload;
  require_same("the model", profiled.model, wanted.model);
  require_same("type", profiled.type, wanted.type);
  require_same("optimizer.kind", profiled.optimizer, wanted.optimizer);
  require_same("samples per rank", profiled.batch_per_rank, wanted.batch_per_rank);
  require_same("accumulate", profiled.accumulate, wanted.accumulate);
  for (std::size_t t = 0; t < wanted.tensors.size() && t < profiled.tensors.size(); ++t) {
    require_same("tensor", profiled.tensors[t], wanted.tensors[t]);
    require_same(fmt::format("elements of {}", wanted.tensors[t]), profiled.sizes[t], wanted.sizes[t]);
  }
  require_same("tensors", profiled.tensors.size(), wanted.tensors.size());
}

ProfileRecorder::ProfileRecorder(std::size_t tensors, Bytes gradients, long most) : gradients_(gradients) {
  instants_.final.resize(tensors);
  rows_.reserve(static_cast<std::size_t>(most) * width());
}

void ProfileRecorder::add(const StepRecord& record, const Moments& moments) {
  if (record.step < kLeftOut) return;
  const StepSeconds& s = record.seconds;
  const Seconds backward_ends = Seconds(moments.backward_ended - moments.began) - instants_.checking;
  rows_.push_back(moments.backward_began - moments.began);
  rows_.push_back(backward_ends);
  rows_.push_back(s.norm);
  rows_.push_back(s.total - Seconds(moments.backward_ended - moments.began) - s.exposed - s.norm);
  rows_.push_back(instants_.checking);
  for (const Instant final : instants_.final) rows_.push_back(final - moments.began);
}

Seconds ProfileRecorder::middle(std::size_t column) const {
  std::vector<Seconds> values;
  for (std::size_t at = column; at < rows_.size(); at += width()) values.push_back(rows_[at]);
  return median(std::move(values)).value_or(Seconds(0));
}

cost::StepProfile ProfileRecorder::result() const {
  cost::StepProfile profile;
  profile.backward_begins = middle(0), profile.backward_ends = middle(1);
  profile.norm = middle(2), profile.optimizer = middle(3);
  for (std::size_t t = 0; t < instants_.final.size(); ++t) profile.ready.push_back(middle(kHead + t));
  profile.check = cost::SecondsPerByte(middle(4).count() / gradients_.as_double());
  if (instants_.between > Seconds(0)) profile.pulse = Seconds(instants_.squares_between / instants_.between.count());
  profile.moving = measure::copy_pace();
  profile.adding = measure::reduction_pace(1 << 16, 2);
  const CompressionPaces paces = compression_paces();
  profile.narrowing = paces.narrowing, profile.choosing = paces.choosing, profile.spreading = paces.spreading;
  return profile;
}

}  // namespace annulet::train
