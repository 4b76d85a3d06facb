#pragma once
// The folder of a run of annulet train, read back. Both throw InputError naming the file that is missing.
#include <filesystem>

#include "annulet/train/config.hpp"

namespace annulet::cli {

train::Config read_run_config(const std::filesystem::path& folder);
std::filesystem::path weights_of_run(const std::filesystem::path& folder);

}  // namespace annulet::cli
