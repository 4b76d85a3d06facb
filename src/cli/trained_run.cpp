#include "trained_run.hpp"

#include <fmt/format.h>

#include "annulet/base/error.hpp"
#include "config_options.hpp"

namespace annulet::cli {

train::Config read_run_config(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "config.toml";
  if (!std::filesystem::is_regular_file(file)) {
    throw InputError({fmt::format("{} is not there", file.string()), "a run of annulet train leaves one in its folder",
                      "Name the --out of such a run"});
  }
  train::Config config;
  CLI::App app("", "annulet train");
  add_config_options(app, config);
  std::string help;
  parse(app, {"--config", file.string()}, help);
  return config;
}

std::filesystem::path weights_of_run(const std::filesystem::path& folder) {
  std::filesystem::path file = folder / "weights.safetensors";
  if (std::filesystem::is_regular_file(file)) return file;
  throw InputError({fmt::format("{} is not there", file.string()), "a run writes its weights at its end",
                    "Name the folder of a run that has ended"});
}

}  // namespace annulet::cli
