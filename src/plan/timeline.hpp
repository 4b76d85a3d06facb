#pragma once
// A predicted step as three lines of text: computing, buckets on the wire, and the axis.
#include <string>

#include "annulet/cost/step.hpp"

namespace annulet::plan {

std::string timeline(const cost::StepPrediction& step);

}  // namespace annulet::plan
