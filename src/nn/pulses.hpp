#pragma once
// A pulse() after about every 32 MFLOP of products, a fraction of a millisecond, however many products that takes: one
// after each small one would cost more than it moves.
#include "annulet/nn/model.hpp"

namespace annulet::nn {

class Pulses {
 public:
  explicit Pulses(Progress& progress) : progress_(progress) {}

  void worked(Elements multiply_adds) {
    done_ += multiply_adds;
    if (done_ < kPulse) return;
    done_ = 0;
    progress_.pulse();
  }

 private:
  static constexpr Elements kPulse = 16'000'000;  // multiply-adds

  Progress& progress_;
  Elements done_ = 0;
};

}  // namespace annulet::nn
