#pragma once
// What a reproducible run does differently from the default, on one rank: which samples a pass takes, in which
// micro-shards, and how losses become one number, to the same bits on any number of ranks.
#include <vector>

#include "annulet/data/sampler.hpp"
#include "annulet/nn/model.hpp"
#include "annulet/parallel/exact_control.hpp"
#include "annulet/schedule/micro_shards.hpp"

namespace annulet::train {

// Throws InputError where there are fewer micro-shards than ranks, or a rank has fewer than it accumulates
// micro-batches.
void require_enough_micro_shards(int micro_shards, int world, Elements accumulate);

class Reproducible {
 public:
  // `stage` of ZeRO. Throws as above.
  Reproducible(collectives::Engine& engine, int micro_shards, Elements accumulate, int stage);

  // Most samples of a pass, on any rank, of a step of so many.
  Elements capacity(Elements samples) const;

  // Most micro-shards of a pass.
  Elements most_micro_shards() const;

  Elements passes() const { return std::ssize(sums_.passes); }

  // The samples of a pass out of those of the whole step.
  data::Slice slice(const data::Slice& step, Elements pass);

  // A batch of the last slice in its micro-shards; or, to evaluate, in single samples.
  template <class T>
  void mark(nn::Batch<T>& batch);
  template <class T>
  void mark_samples(nn::Batch<T>& batch);

  // Losses of the last batch that was marked, after its forward pass.
  void add(const nn::LossSums& sums);

  // What is to be agreed on: the losses added since the last time, and what the caller knows of gradients.
  parallel::ExactRecord& record() { return record_; }
  parallel::ControlRecord agree();

 private:
  int micro_shards_, world_;
  Elements accumulate_;
  schedule::RankSums sums_;
  std::vector<Elements> samples_;  // of the micro-shards of the batch
  std::vector<double> losses_;     // as many
  parallel::ExactRecord record_;
  parallel::ExactControl control_;
};

}  // namespace annulet::train
