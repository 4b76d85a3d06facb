#pragma once
// The engine: several operations in flight, stepped by whoever the driver (driver.hpp) says, the oldest first.
// Operations are declared once, in the same order on every rank, and launched in the same order on every rank; launches
// carry nothing extra. Results have the same bits whichever driver runs. Only one thread at a time calls the transport.
#include <memory>
#include <string>
#include <vector>

#include "annulet/collectives/driver.hpp"
#include "annulet/collectives/operation.hpp"
#include "annulet/comm/communicator.hpp"
#include "annulet/comm/transport.hpp"

namespace annulet::collectives {

struct EngineOptions {
  Driver driver = Driver::polling;
  Seconds deadline{300};  // longest time in which nothing moves while somebody waits
  int active = 3;         // operations stepped at once; later ones queue
};

// Index of a declared operation.
enum class OperationId : std::size_t {};

class Engine {
 public:
  Engine(std::unique_ptr<comm::Transport> transport, const EngineOptions& options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Before the first launch only.
  OperationId declare(OperationSpec spec);
  const OperationSpec& spec(OperationId id) const;
  std::size_t declared() const;

  // Begins an operation that is not running. Never blocks.
  void launch(OperationId id);

  // Returns when the operation has finished here. Throws RunError naming what is stuck once nothing has moved for the
  // deadline, and whatever went wrong in the progress thread.
  void wait(OperationId id);

  // Lets communication move, some microseconds of work: with `polling`, and with `thread` where its thread is late.
  void poll();

  // Whether the operation has finished here, without letting anything move.
  bool finished(OperationId id) const;

  // Of the last finished run.
  const Timeline& timeline(OperationId id) const;

  Driver driver() const;
  int rank() const;
  int world() const;

  // Memory in which operations keep what has arrived: counted, and by the plans.
  Bytes scratch() const;
  Bytes planned_scratch() const;

  // What was sent so far. Only while no operation is running.
  const comm::Traffic& traffic() const;

 private:
  class Core;
  std::unique_ptr<Core> core_;
};

// Compares the declared operations over the ranks before anything is launched. Collective over `communicator`.
// Throws InputError on every rank, naming the first operation that differs with both sizes and both ranks.
void require_same_operations(const comm::Communicator& communicator, const Engine& engine);

}  // namespace annulet::collectives
