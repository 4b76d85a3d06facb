#pragma once
// The control record of a reproducible run: all of it are integers, sums that do not depend on the order of anything
// (base/order_free_sum.hpp), so that any number of ranks agrees on the same bits, in one small all-reduce.
#include <vector>

#include "annulet/base/order_free_sum.hpp"
#include "annulet/parallel/control.hpp"

namespace annulet::parallel {

struct ExactRecord {
  OrderFreeSum loss;          // of micro-shards, or samples
  OrderFreeSum squared_norm;  // of the summed gradients
  std::int64_t correct = 0, targets = 0;
  bool bad = false;  // this rank's loss or gradients were not finite
};

class ExactControl {
 public:
  explicit ExactControl(collectives::Engine& engine);

  // Sums over all ranks; every rank gets the same bits, whatever their number. Blocks.
  ControlRecord agree(const ExactRecord& mine);

 private:
  collectives::Engine& engine_;
  std::vector<std::int64_t> words_;  // the operation's data: loss, norm, correct, targets, and a word for each rank
  collectives::OperationId operation_;
};

}  // namespace annulet::parallel
