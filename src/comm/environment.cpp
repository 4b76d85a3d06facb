#include "annulet/comm/environment.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <thread>

#include "annulet/base/error.hpp"
#include "annulet/comm/mpi.hpp"

namespace annulet::comm {
namespace {

ThreadLevel level_of(int provided) {
  if (provided == MPI_THREAD_MULTIPLE) return ThreadLevel::multiple;
  if (provided == MPI_THREAD_SERIALIZED) return ThreadLevel::serialized;
  return provided == MPI_THREAD_FUNNELED ? ThreadLevel::funneled : ThreadLevel::single;
}

std::optional<int> number_in(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  int value = 0;
  const std::string_view view(text);
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), value);
  return error == std::errc{} && end == view.data() + view.size() ? std::optional(value) : std::nullopt;
}

bool started_by_srun() {  // an mpirun inside an allocation inherits SLURM variables that say nothing about its own
                          // ranks
  return std::getenv("SLURM_STEP_ID") != nullptr && std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr &&
         std::getenv("PMI_SIZE") == nullptr;
}

void check_world(int size, std::optional<int> expected_ranks) {
  if (const auto launcher = launcher_count(); launcher && launcher->processes != size) {
    throw InputError(
        {fmt::format("the launcher started {} processes but the world size is {}", launcher->processes, size),
         fmt::format("{}={}; the launcher and the MPI library of this program do not belong together, so "
                     "that every process believes it is alone",
                     launcher->variable, launcher->processes),
         "Use the mpirun of the MPI that this program was built with"});
  }
  if (expected_ranks && *expected_ranks != size) {
    throw InputError({fmt::format("the world has {} rank{}, expected {}", size, size == 1 ? "" : "s", *expected_ranks),
                      "--expect-ranks was given", fmt::format("Launch with mpirun -n {}", *expected_ranks)});
  }
}

std::string placement_of(const Communicator& world, std::int64_t launched_as) {
  const std::vector<int> node = world.nodes();
  const int nodes = 1 + node.back();
  std::string text =
      fmt::format("{} rank{} on {} node{}", world.size(), world.size() == 1 ? "" : "s", nodes, nodes == 1 ? "" : "s");
  const auto launched = world.all_gather(std::span(&launched_as, 1));
  if (nodes == 1) return text;
  text += ", in ring order";
  for (std::size_t r = 0; r < launched.size(); ++r) {
    text += fmt::format("{} {}", r > 0 && node[r] != node[r - 1] ? " |" : "", launched[r]);
  }
  return text;
}

}  // namespace

std::string_view to_text(ThreadLevel level) {
  switch (level) {
    case ThreadLevel::single:
      return "MPI_THREAD_SINGLE";
    case ThreadLevel::funneled:
      return "MPI_THREAD_FUNNELED";
    case ThreadLevel::serialized:
      return "MPI_THREAD_SERIALIZED";
    case ThreadLevel::multiple:
      return "MPI_THREAD_MULTIPLE";
  }
  return "unknown";
}

Environment::Environment(std::optional<int> expected_ranks) {
  int initialized = 0, provided = MPI_THREAD_SINGLE;
  MPI_Initialized(&initialized);
  owner_ = initialized == 0;
  if (owner_) {
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
  } else {
    check(MPI_Query_thread(&provided), "MPI_Query_thread");
  }
  level_ = level_of(provided);
  world_ = duplicate(MPI_COMM_WORLD);
  check_world(world_.size(), expected_ranks);
  const int launched_as = world_.rank();
  world_ = world_.by_node();
  placement_ = placement_of(world_, launched_as);
}

Environment::~Environment() {
  world_ = {};
  if (owner_ && std::uncaught_exceptions() == 0) MPI_Finalize();
}

std::string Environment::library() const {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string version(text, static_cast<std::size_t>(length));
  return version.substr(0, version.find_first_of(",\n"));
}

std::optional<LauncherCount> launcher_count() {
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    if (const auto n = number_in(variable)) return LauncherCount{*n, variable};
  }
  if (started_by_srun()) {
    if (const auto n = number_in("SLURM_STEP_NUM_TASKS")) return LauncherCount{*n, "SLURM_STEP_NUM_TASKS"};
  }
  return std::nullopt;
}

int abort_code(int code) { return code >= 1 && code <= 125 ? code : 1; }

void abort_job(int code, std::string_view reason) {
  if (!reason.empty()) {
    std::fprintf(stderr, "%.*s\n", static_cast<int>(reason.size()), reason.data());
    std::fflush(stderr);
  }
  const int exit_code = abort_code(code);
  int initialized = 0, finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  if (initialized == 0 || finalized != 0) ::_exit(exit_code);
  std::thread([exit_code] {
    std::this_thread::sleep_for(std::chrono::seconds(2));
    ::_exit(exit_code);
  }).detach();
  MPI_Abort(MPI_COMM_WORLD, exit_code);
  ::_exit(exit_code);
}

}  // namespace annulet::comm
