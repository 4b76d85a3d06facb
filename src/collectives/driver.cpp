#include "annulet/collectives/driver.hpp"

#include <fmt/format.h>

#include "annulet/base/error.hpp"

namespace annulet::collectives {

std::string_view to_text(Driver driver) {
  switch (driver) {
    case Driver::blocking:
      return "blocking";
    case Driver::polling:
      return "polling";
    case Driver::thread:
      return "thread";
  }
  return "unknown";
}

DriverChoice choose_driver(std::string_view wish, const Placement& placement, bool threads_allowed) {
  const auto [cores, ranks_on_node, world] = placement;
  if (wish == "blocking") return {Driver::blocking, "as asked"};
  if (wish == "polling") return {Driver::polling, "as asked"};
  if (wish == "thread") {
    if (threads_allowed) return {Driver::thread, "as asked"};
    return {Driver::polling, "thread was asked for, but this MPI allows only its main thread to communicate"};
  }
  if (wish != "auto") {
    throw InputError({fmt::format("'{}' is not a driver", wish), "", "Choose blocking, polling, thread or auto"});
  }
  if (world == 1) return {Driver::polling, "one rank has nobody to communicate with"};
  if (!threads_allowed) return {Driver::polling, "this MPI allows only its main thread to communicate"};
  if (cores >= 2 * ranks_on_node) {
    return {Driver::thread,
            fmt::format("{} cores for {} rank(s) leave one for a progress thread", cores, ranks_on_node)};
  }
  return {Driver::polling,
          fmt::format("{} core(s) for {} rank(s) leave none for a progress thread", cores, ranks_on_node)};
}

}  // namespace annulet::collectives
