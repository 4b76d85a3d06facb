#pragma once
// profile.json: what computing costs one rank, as train::Profile. Times in seconds, paces in seconds per byte.
#include <filesystem>
#include <string>

#include "annulet/train/profile.hpp"

namespace annulet::report {

std::string profile_json(const train::Profile& profile);

// Throws InputError naming the file, and what in it is missing or makes no sense.
train::Profile read_profile(const std::filesystem::path& file);

}  // namespace annulet::report
