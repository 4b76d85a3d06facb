#pragma once
// Who steps the engine:
//   blocking  wait() runs everything: nothing overlaps with computation
//   polling   poll() takes a step, called between and inside layers; wait() finishes the rest
//   thread    a progress thread steps; the caller only launches and waits, and takes a step at poll() where the thread
//             should be at work and has no core
#include <string>
#include <string_view>

namespace annulet::collectives {

enum class Driver { blocking, polling, thread };
std::string_view to_text(Driver driver);

// What a rank runs on.
struct Placement {
  int cores = 1;  // distinct ones that the ranks of this node may use together
  int ranks_on_node = 1;
  int world = 1;  // ranks on all nodes
};

struct DriverChoice {
  Driver driver;
  std::string reason;
};

// The driver for a wish of blocking, polling, thread or auto, which takes a progress thread where every rank has a core
// for one. Where MPI allows no threads, polling instead of the thread. Throws InputError for another wish.
DriverChoice choose_driver(std::string_view wish, const Placement& placement, bool threads_allowed);

}  // namespace annulet::collectives
