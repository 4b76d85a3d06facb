#pragma once
// A run's steps, told to a tracer on every rank; in the end rank 0 has what all ranks wrote.
#include <string>

#include "annulet/comm/communicator.hpp"
#include "annulet/train/tracer.hpp"
#include "annulet/train/trainer.hpp"

namespace annulet::train {

class RunTrace {
 public:
  // Both outlive it; without a tracer nothing happens.
  RunTrace(const comm::Communicator& world, Tracer* tracer) : world_(world), tracer_(tracer) {}

  // Collective; `ahead`: this rank's clock before rank 0's.
  void begin(Seconds ahead);

  // The step that the trainer has just made.
  template <class T>
  void step(const Trainer<T>& trainer, const StepRecord& record);

  // Collective, at a normal end.
  void merge();

 private:
  const comm::Communicator& world_;
  Tracer* tracer_;
  TracedStep traced_;
};

}  // namespace annulet::train
