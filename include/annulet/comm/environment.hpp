#pragma once
// MPI for the life of a program: initialised once, asked for MPI_THREAD_MULTIPLE and used one thread at a time.
#include <optional>
#include <string>
#include <string_view>

#include "annulet/comm/communicator.hpp"

namespace annulet::comm {

enum class ThreadLevel { single, funneled, serialized, multiple };
std::string_view to_text(ThreadLevel level);

class Environment {
 public:
  // Initialises MPI unless it already is; then it is not finalised here either.
  // Throws InputError if the launcher started another number of processes than the world has (a program of one MPI
  // started by the launcher of another: every process would be rank 0 of 1 and write the same files), or if the world
  // does not have `expected_ranks`.
  explicit Environment(std::optional<int> expected_ranks = std::nullopt);
  ~Environment();
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  const Communicator& world() const { return world_; }
  ThreadLevel thread_level() const { return level_; }
  std::string library() const;  // "Open MPI v4.1.4"

  // "4 ranks on 1 node", or "4 ranks on 2 nodes, in ring order 0 2 | 1 3" with the launcher's numbers of the ranks.
  const std::string& placement() const { return placement_; }

 private:
  Communicator world_;  // the launcher's ranks, node by node
  std::string placement_;
  ThreadLevel level_ = ThreadLevel::single;
  bool owner_ = false;
};

// How many processes the launcher says it started, from OMPI_COMM_WORLD_SIZE, PMI_SIZE or, under srun itself,
// SLURM_STEP_NUM_TASKS; nothing if the program was started by hand.
struct LauncherCount {
  int processes;
  std::string variable;
};
std::optional<LauncherCount> launcher_count();

// The exit code that MPI_Abort is given: 1..125, since 0 and multiples of 256 would read as success.
int abort_code(int code);

// Ends the whole job: prints `reason` once to stderr (silent if empty), then MPI_Abort; if that does not end the
// process within two seconds, the process ends itself. Calls no collective. Works without MPI too.
[[noreturn]] void abort_job(int code, std::string_view reason);

}  // namespace annulet::comm
