#pragma once
// A collective of one rank that stops after every round (schedule/rounds.hpp), for people to look at what it holds.
// Each round is an operation of the engine: the steps of the plan that belong to it, on data and scratch that stay from
// one round to the next. With all steps in one round it is the collective as it is run otherwise.
#include <span>
#include <vector>

#include "annulet/collectives/engine.hpp"

namespace annulet::collectives {

class RoundByRound {
 public:
  // `rounds`: of the plan's steps, 1 to `count`. `input`: what the data hold before.
  RoundByRound(std::unique_ptr<comm::Transport> transport, const EngineOptions& options, const schedule::Plan& plan,
               std::span<const int> rounds, int count, const ElementType& element, std::span<const std::byte> input);

  // Begins a round, all before it having finished on this rank; then either wait, or poll until it has finished.
  void launch(int round);
  void wait(int round);
  void poll();
  bool finished(int round) const;

  std::span<const std::byte> data() const;  // while no round is running
  Bytes sent() const;                       // so far, counted by the transport

 private:
  OperationId id(int round) const { return operations_[static_cast<std::size_t>(round - 1)]; }

  std::vector<std::byte> memory_;  // data, then scratch
  std::size_t data_bytes_;
  std::vector<OperationId> operations_;  // [round - 1]
  Engine engine_;                        // goes first: what it has under way works on the memory
};

}  // namespace annulet::collectives
