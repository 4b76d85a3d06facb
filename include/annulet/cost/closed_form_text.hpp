#pragma once
// The closed forms as text, for whoever asks where a number comes from. In them p is the number of ranks, q the largest
// power of two up to p, M the bytes of the vector, |c| those of a chunk; alpha, g, beta and gamma as in link.hpp.
#include <string_view>

#include "annulet/cost/closed_form.hpp"

namespace annulet::cost {

struct ClosedFormText {
  CollectiveKind kind;
  Algorithm algorithm;
  std::string_view steps, latency, bandwidth, reduction, least, mean, largest;
};

const ClosedFormText& closed_form_text(CollectiveKind kind, Algorithm algorithm, int ranks);

// Of least_wire_bytes, and of the payload.
std::string_view least_wire_text(CollectiveKind kind);
std::string_view payload_text(CollectiveKind kind);

}  // namespace annulet::cost
