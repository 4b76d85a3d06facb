#include "annulet/train/reproducible.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "annulet/base/error.hpp"

namespace annulet::train {

void require_enough_micro_shards(int micro_shards, int world, Elements accumulate) {
  const std::string what = fmt::format("reproducible = {} on {} rank{}", micro_shards, world, world == 1 ? "" : "s");
  if (micro_shards < world) {
    throw InputError({what, "every rank computes a micro-shard at least",
                      fmt::format("Choose {} or more, the same for every number of ranks", world)});
  }
  const Elements each = (micro_shards + world - 1) / world;
  if (accumulate <= each) return;
  throw InputError({fmt::format("{} with accumulate = {}", what, accumulate),
                    fmt::format("a rank has {} micro-shards, and a micro-batch at least one of them", each),
                    fmt::format("Choose more micro-shards, or accumulate at most {}", each)});
}

namespace {

int checked(int micro_shards, int world, Elements accumulate) {
  require_enough_micro_shards(micro_shards, world, accumulate);
  return micro_shards;
}

}  // namespace

Reproducible::Reproducible(collectives::Engine& engine, int micro_shards, Elements accumulate, int stage)
    : micro_shards_(checked(micro_shards, engine.world(), accumulate)),
      world_(engine.world()),
      accumulate_(accumulate),
      sums_(schedule::rank_sums({micro_shards, engine.world(), engine.rank(), accumulate, stage == 3})),
      control_(engine) {}

Elements Reproducible::capacity(Elements samples) const {
  const Elements share = samples / micro_shards_, extra = samples % micro_shards_;
  const auto before = [&](Elements shard) { return shard * share + std::min(shard, extra); };
  Elements most = 1;
  for (int rank = 0; rank < world_; ++rank) {
    for (const schedule::SumPass& pass : schedule::rank_sums({micro_shards_, world_, rank, accumulate_}).passes) {
      most = std::max(most, before(pass.micro_shards.end()) - before(pass.micro_shards.first));
    }
  }
  return most;
}

Elements Reproducible::most_micro_shards() const {
  Elements most = 1;
  for (const schedule::SumPass& pass : sums_.passes) most = std::max(most, pass.micro_shards.count);
  return most;
}

data::Slice Reproducible::slice(const data::Slice& step, Elements pass) {
  const schedule::Interval shards = sums_.passes[static_cast<std::size_t>(pass)].micro_shards;
  data::Slice slice = step.micro(shards.first, micro_shards_);
  samples_.clear();
  for (Elements s = shards.first; s < shards.end(); ++s) {
    samples_.push_back(std::ssize(step.micro(s, micro_shards_).indices));
  }
  Elements count = 0;
  for (const Elements samples : samples_) count += samples;
  slice.indices = {slice.indices.data(), static_cast<std::size_t>(count)};
  losses_.resize(samples_.size());
  return slice;
}

template <class T>
void Reproducible::mark(nn::Batch<T>& batch) {
  batch.micro_shards = samples_, batch.losses = losses_;
}

template <class T>
void Reproducible::mark_samples(nn::Batch<T>& batch) {
  samples_.assign(static_cast<std::size_t>(batch.samples), 1);
  losses_.resize(samples_.size());
  mark(batch);
}

void Reproducible::add(const nn::LossSums& sums) {
  record_.loss.add(losses_);
  record_.correct += sums.correct, record_.targets += sums.targets;
  if (!std::isfinite(sums.loss)) record_.bad = true;
}

parallel::ControlRecord Reproducible::agree() { return control_.agree(std::exchange(record_, {})); }

template void Reproducible::mark<float>(nn::Batch<float>&);
template void Reproducible::mark<double>(nn::Batch<double>&);
template void Reproducible::mark_samples<float>(nn::Batch<float>&);
template void Reproducible::mark_samples<double>(nn::Batch<double>&);

}  // namespace annulet::train
