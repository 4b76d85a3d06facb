#include "on_all_ranks.hpp"

#include <fmt/format.h>

#include "annulet/train/agree.hpp"
#include "commands.hpp"

namespace annulet::cli {

int on_all_ranks(std::string_view command, const comm::Environment& environment, const std::function<int()>& work) {
  const int rank = environment.world().rank();
  try {
    return work();
  } catch (const train::AgreedError& error) {
    if (rank == 0) fmt::print(stderr, "annulet {}: {}\n", command, error.what());
    return 1;
  } catch (const std::exception& error) {
    comm::abort_job(1, fmt::format("annulet {}: rank {}: {}", command, rank, error.what()));
  }
}

int on_simulated_ranks(std::string_view command, const std::function<int()>& work) {
  try {
    return work();
  } catch (const std::exception& error) {
    print_error_once(fmt::format("annulet {}: {}", command, error.what()));
    return 1;
  }
}

}  // namespace annulet::cli
