#pragma once
// The closed forms as text, for whoever asks where a number comes from. In them p is the number of ranks, q the largest
// power of two up to p, M the bytes of the vector, |c| those of a chunk, S the segments; alpha, g, beta and gamma as in
// link.hpp.
#include <string_view>

#include "annulet/cost/closed_form.hpp"

namespace annulet::cost {

struct ClosedFormText {
  schedule::Collective collective;
  schedule::Algorithm algorithm;
  std::string_view steps, latency, bandwidth, reduction, least, mean, largest;
};

const ClosedFormText& closed_form_text(schedule::Collective collective, schedule::Algorithm algorithm, int ranks);

// Of least_wire_bytes, and of the payload.
std::string_view least_wire_text(schedule::Collective collective);
std::string_view payload_text(schedule::Collective collective);

}  // namespace annulet::cost
