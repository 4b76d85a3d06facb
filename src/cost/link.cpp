#include "annulet/cost/link.hpp"

#include <fmt/format.h>

namespace annulet::cost {
namespace {

std::string rate(SecondsPerByte pace) {
  return pace.value() > 0 ? annulet::to_text(ByteRate(1 / pace.value())) : "unlimited";
}

}  // namespace

std::string to_text(const Link& link) {
  return fmt::format("alpha {}, g {}, bandwidth {}, reduction {}", annulet::to_text(link.alpha),
                     annulet::to_text(link.gap), rate(link.beta), rate(link.gamma));
}

}  // namespace annulet::cost
