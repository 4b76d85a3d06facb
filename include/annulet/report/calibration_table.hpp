#pragma once
// What `annulet calibrate` prints: every measured point beside what the fitted links predict for it, and the links.
#include <string>

#include "annulet/cost/machine.hpp"
#include "annulet/measure/calibrate_network.hpp"

namespace annulet::report {

std::string calibration_table(const measure::NetworkCalibration& calibration, const cost::Network& network);

}  // namespace annulet::report
