#pragma once
// What a run prints at its end: per bucket and for the step, what was measured beside what was predicted.
#include <string>
#include <vector>

#include "annulet/train/records.hpp"

namespace annulet::report {

// A table of rank 0's buckets over the sampled steps (without the first five, as in the summary), and where the time of
// a step went.
std::string closing_table(const train::Summary& summary, const std::vector<train::BucketRecord>& buckets,
                          const std::vector<train::StepRecord>& steps);

}  // namespace annulet::report
