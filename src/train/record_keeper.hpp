#pragma once
// The records of a run, every one of a short run, evenly spaced ones of a long run: enough for medians, never more than
// kMost. When it is full, every other one goes.
#include <algorithm>
#include <vector>

#include "annulet/train/records.hpp"

namespace annulet::train {

class RecordKeeper {
 public:
  explicit RecordKeeper(long steps) { kept_.reserve(static_cast<std::size_t>(std::min(steps, kMost))); }

  void add(const StepRecord& record) {
    if (record.step % stride_ != 0) return;
    if (kept_.size() == static_cast<std::size_t>(kMost)) thin_out();
    if (record.step % stride_ == 0) kept_.push_back(record);
  }

  const std::vector<StepRecord>& kept() const { return kept_; }

 private:
  static constexpr long kMost = 1 << 16;

  void thin_out() {
    stride_ *= 2;
    std::erase_if(kept_, [this](const StepRecord& record) { return record.step % stride_ != 0; });
  }

  std::vector<StepRecord> kept_;
  long stride_ = 1;
};

}  // namespace annulet::train
