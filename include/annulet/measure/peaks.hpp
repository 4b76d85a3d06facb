#pragma once
// What one core can do at most, in single precision: independent chains of fused multiply-adds on the widest vectors
// that the build may use, enough chains to hide the latency. Two operations per lane and instruction; without FMA in
// the build, of a multiplication and an addition. The best of many short bursts: the clock at which that burst ran. The
// peak of a machine is this times the distinct cores in use (measure/cores.hpp).
#include "annulet/base/units.hpp"

namespace annulet::measure {

// Of the calling thread's core.
FlopRate fma_peak(Seconds budget = Seconds(0.02));

}  // namespace annulet::measure
