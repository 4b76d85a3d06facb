#pragma once
// What compressing the gradients of a run saved, what it took, and up to how many ranks it would pay.
#include <string>

#include "annulet/train/records.hpp"

namespace annulet::report {

// Whether pieces were gathered.
bool is_sparse(const train::Summary& summary);

// Nothing for a run without compression.
std::string compression_lines(const train::Summary& summary);

}  // namespace annulet::report
