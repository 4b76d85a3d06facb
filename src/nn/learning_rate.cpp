#include <cmath>
#include <numbers>

#include "annulet/nn/optimizer.hpp"

namespace annulet::nn {

double clip_scale(double norm, double max_norm) {
  if (max_norm == 0) return 1;
  const double scale = max_norm / (norm + 1e-6);
  return scale > 1 ? 1 : scale;  // NaN stays NaN
}

double Schedule::at(long step) const {
  if (step < warmup) return peak * static_cast<double>(step + 1) / static_cast<double>(warmup + 1);
  if (kind == Kind::constant) return peak;
  if (step >= total) return final;
  const double done = static_cast<double>(step - warmup) / static_cast<double>(total - warmup);
  return final + (peak - final) * 0.5 * (1 + std::cos(std::numbers::pi * done));
}

}  // namespace annulet::nn
