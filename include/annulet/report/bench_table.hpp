#pragma once
// What `annulet bench` prints and writes: a line for each size and algorithm, as nccl-tests has them, with bytes on the
// wire and what was predicted beside it; the same rows as JSON and CSV, empty or null where a value does not exist.
#include <string>
#include <vector>

#include "annulet/measure/bench.hpp"

namespace annulet::report {

// What the columns mean, each bandwidth's formula, and their names.
std::string bench_header(schedule::Collective collective);
std::string bench_line(const measure::BenchRow& row);

// How much faster ours are than MPI's own at each size of each collective, and the median residual; empty if there is
// nothing to compare.
std::string bench_summary(const std::vector<measure::BenchRow>& rows);

// {"rows": [{collective, algorithm, bytes, type, ranks, time_p50_seconds, ...}]}
std::string bench_json(const std::vector<measure::BenchRow>& rows);
std::string bench_csv(const std::vector<measure::BenchRow>& rows);

}  // namespace annulet::report
