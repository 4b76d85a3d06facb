#pragma once
// What a run decides by prediction before its first step, and what it foretells of a step: the same on all ranks.
#include <optional>
#include <string>
#include <vector>

#include "annulet/train/session.hpp"
#include "predict.hpp"

namespace annulet::train {

class Forecast {
 public:
  // All outlive it; `element`: bytes of a gradient.
  Forecast(const comm::Communicator& world, const SessionOptions& options, Bytes element)
      : world_(world), options_(options), element_(element) {}

  // Whether decide() has something to decide: what `auto` stands for.
  bool open(const Config& config) const;

  // Collective: the bucket cap, then the algorithm of every bucket, of a model of these tensors whose step takes so
  // many operations on one rank. Writes them into `config`.
  void decide(Config& config, const Machine& machine, const Workload& work, Flops flops);

  // Collective: learns for the prediction what moving bytes costs, where the machine file does not tell.
  void know_the_price_of_moving(const Config& config, Machine& machine) const;

  // Foretells a step from the profile, if there is one. Throws InputError if it is of something else.
  void predict(const Config& config, const Machine& machine, const Workload& workload);

  // How gradients and weights travel, in a line.
  std::string algorithm(const Config& config) const;

  const std::optional<cost::BucketCapChoice>& bucket_cap() const { return bucket_cap_; }
  const std::optional<cost::StepPrediction>& step() const { return step_; }

 private:
  std::string dense_algorithm(const Config& config) const;

  const comm::Communicator& world_;
  const SessionOptions& options_;
  Bytes element_;
  std::optional<cost::BucketCapChoice> bucket_cap_;
  std::optional<AlgorithmChoice> algorithms_;
  std::optional<cost::StepPrediction> step_;
};

}  // namespace annulet::train
