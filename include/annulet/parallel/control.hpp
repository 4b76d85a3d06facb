#pragma once
// The control record: what the ranks of a step must agree on before the optimiser runs, in one small all-reduce.
#include <memory>

#include "annulet/collectives/engine.hpp"

namespace annulet::parallel {

struct ControlRecord {
  double loss = 0;                // sum over targets
  double correct = 0;             // targets foreseen right
  double targets = 0;             // samples or tokens: how many the sums are over
  double squared_norm = 0;        // of the summed gradients
  int lowest_bad_rank = kNobody;  // the lowest rank whose loss or gradients were not finite

  static constexpr int kNobody = 1 << 30;

  double mean_loss() const { return loss / targets; }
};

class Control {
 public:
  explicit Control(collectives::Engine& engine);

  // Sums and minima over all ranks; every rank gets the same bits. Blocks.
  ControlRecord agree(const ControlRecord& mine);

 private:
  collectives::Engine& engine_;
  std::unique_ptr<ControlRecord> record_;  // its address is the operation's data
  collectives::OperationId operation_;
};

}  // namespace annulet::parallel
