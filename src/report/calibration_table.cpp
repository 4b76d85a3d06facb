#include "annulet/report/calibration_table.hpp"

#include <fmt/format.h>

namespace annulet::report {

std::string calibration_table(const measure::NetworkCalibration& calibration, const cost::Network& network) {
  std::string text =
      "message: bytes of one, and how many each way (ring: the vector); times of the quickest round "
      "(between nodes: the middle one)\n";
  text += fmt::format("{:<8} {:<10} {:>10} {:>6} {:>10} {:>10} {:>9}\n", "where", "pattern", "message", "times",
                      "measured", "predicted", "residual");
  for (const measure::NetworkPoint& point : calibration.points) {
    text += fmt::format("{:<8} {:<10} {:>10} {:>6} {:>10} {:>10} {:>+7.1f} %\n",
                        point.scope == cost::Scope::inside ? "inside" : "between", measure::to_text(point.pattern),
                        to_text(point.bytes), point.messages, to_text(point.measured), to_text(point.predicted),
                        100 * point.residual());
  }
  return text + fmt::format("{}\nresiduals of all but one way: median {:.1f} %, worst {:.1f} %\n",
                            cost::to_text(network), 100 * calibration.median_residual,
                            100 * calibration.worst_residual);
}

}  // namespace annulet::report
