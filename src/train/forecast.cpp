#include "forecast.hpp"

#include <fmt/format.h>

#include "annulet/base/error.hpp"

namespace annulet::train {

// At stage 3 a bucket is a layer.
bool Forecast::open(const Config& config) const {
  return world_.size() > 1 && config.zero < 3 && (!config.bucket || preferred_executions(config).has_value());
}

void Forecast::decide(Config& config, const Machine& machine, const Workload& work, Flops flops) {
  const BucketCapInput input{
      config, machine, options_.machine, options_.profile, work.sizes, work.layers, work.tied_layer, element_, flops};
  if (options_.profile && options_.profile->workload.sizes != input.tensors) return;  // refused in predict()
  const bool open = preferred_executions(config).has_value();
  if (!config.bucket) {
    bucket_cap_ = choose_bucket_cap(world_, input);
    config.bucket = bucket_cap_->cap;
    config.first_bucket = std::min(config.first_bucket, bucket_cap_->cap);
  }
  if (!open || input.tensors.empty()) return;
  algorithms_ = choose_algorithms(world_, input);
  config.algorithm = algorithms_->option;
}

void Forecast::know_the_price_of_moving(const Config& config, Machine& machine) const {
  cost::Link &inside = machine.network.inside, &between = machine.network.between;
  if (!options_.profile || world_.size() == 1) return;
  if (inside.moving.value() > 0 && between.moving.value() > 0) return;
  inside.moving = between.moving = moving_pace(world_, config);
}

void Forecast::predict(const Config& config, const Machine& machine, const Workload& workload) {
  if (!options_.profile) return;
  if (config.reproducible > 0) {
    throw InputError({"a reproducible step cannot be predicted from a profile",
                      "a rank makes as many passes as it has pieces of the tree, which the profile does not know",
                      "Leave out --predict-from, or --reproducible"});
  }
  require_fitting(*options_.profile, workload);
  step_ = cost::predict_step(step_input(config, machine, *options_.profile, element_, world_.size()));
}

std::string Forecast::algorithm(const Config& config) const {
  if (config.reproducible > 0) {
    return fmt::format("everyone to the owner of a chunk, in the order of the tree{}, segments of {}",
                       config.zero > 0 ? fmt::format(" (ZeRO {})", config.zero) : "",
                       to_text(sync_options(config).segment));
  }
  const schedule::Compression compression = sync_options(config).compression;
  switch (compression.kind) {
    case schedule::Compression::Kind::none:
      break;
    case schedule::Compression::Kind::bfloat16:
      return dense_algorithm(config) + "; gradients as bf16";
    case schedule::Compression::Kind::top_k:
      return fmt::format("ring, all-gather of one gradient in {} (topk), segments of {}", compression.one_in,
                         to_text(sync_options(config).segment));
  }
  return dense_algorithm(config);
}

std::string Forecast::dense_algorithm(const Config& config) const {
  const parallel::SyncOptions sync = sync_options(config);
  if (config.zero > 0) {
    return fmt::format("ring, reduce-scatter and all-gather (ZeRO {}{}), segments of {}", config.zero,
                       config.zero == 3 ? ": a bucket is a layer" : "", to_text(sync.segment));
  }
  if (!algorithms_) return to_text(schedule::bucket_execution(sync.bucket, sync));
  std::string text;
  for (const schedule::ExecutionRange& range : sync.executions) {
    const bool one = range.first == range.last;
    text +=
        fmt::format("{}{} for {}{}", text.empty() ? "" : "; ", to_text(schedule::bucket_execution(range.first, sync)),
                    to_text(range.first), one ? "" : " to " + to_text(range.last));
  }
  return fmt::format("{} (auto: by predicted cost on {})", text, algorithms_->basis);
}

}  // namespace annulet::train
