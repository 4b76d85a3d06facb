#pragma once
// A machine file: the link between ranks, in TOML. alpha, gap: times; bandwidth, reduction: bytes a second.
#include <filesystem>

#include "annulet/cost/link.hpp"

namespace annulet::cli {

// Throws InputError naming the file, and the key that is missing, unknown or out of range. gap is 0 and reduction free
// unless given.
cost::Link read_machine_file(const std::filesystem::path& file);

}  // namespace annulet::cli
