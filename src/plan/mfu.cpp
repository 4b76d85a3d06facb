#include "annulet/plan/mfu.hpp"

#include "annulet/base/error.hpp"

namespace annulet::plan {

double mfu(Flops per_token, TokenRate rate, const Devices& devices) {
  return mfu(per_token * rate.value(), Seconds(1), devices);
}

double mfu(Flops step, Seconds time, const Devices& devices) {
  ANNULET_EXPECTS(devices.count >= 1 && devices.peak > FlopRate(0), "a part of the peak of one device or more");
  return step / time / (devices.peak * devices.count);
}

Seconds training_time(const Training& training) {
  const auto& [parameters, tokens, devices, reached] = training;
  ANNULET_EXPECTS(devices >= 1 && reached > FlopRate(0), "one device or more that computes");
  const double operations = 8 * static_cast<double>(tokens) * static_cast<double>(parameters);
  return Seconds(operations / (devices * reached.value()));
}

}  // namespace annulet::plan
