#pragma once
// What training held in memory, for people: by kind, counted beside planned, of the rank that held most of it; the
// model states together; and the largest process.
#include <string>

#include "annulet/train/records.hpp"

namespace annulet::report {

// Empty if nothing is known.
std::string memory_table(const train::Summary& summary);

}  // namespace annulet::report
