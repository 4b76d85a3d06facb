#include "annulet/cost/link.hpp"

#include <fmt/format.h>

namespace annulet::cost {
namespace {

std::string rate(SecondsPerByte pace) {
  return pace.value() > 0 ? annulet::to_text(ByteRate(1 / pace.value())) : "unlimited";
}

}  // namespace

std::string to_text(const Link& link) {
  std::string text = fmt::format("alpha {}, g {}, bandwidth {}, reduction {}", annulet::to_text(link.alpha),
                                 annulet::to_text(link.gap), rate(link.beta), rate(link.gamma));
  if (link.burst > Bytes(0))
    text += fmt::format("; bursts of {} at {}", annulet::to_text(link.burst), rate(link.burst_pace));
  if (!link.eager) return text;
  return text + fmt::format("; up to {}: alpha {}, g {}, bandwidth {}", annulet::to_text(link.eager->limit),
                            annulet::to_text(link.eager->alpha), annulet::to_text(link.eager->gap),
                            rate(link.eager->beta));
}

}  // namespace annulet::cost
