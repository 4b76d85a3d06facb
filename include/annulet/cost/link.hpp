#pragma once
// A link in the alpha-beta model (Hockney 1994; with a gap per message as in LogGP, Alexandrov et al. 1995):
// a message of n bytes occupies the sender's port for g + n beta and arrives alpha after it has left.
// Adding n received bytes to n others costs n gamma at the receiver.
#include <string>

#include "annulet/base/units.hpp"

namespace annulet::cost {

// Seconds per byte, sent or reduced.
using SecondsPerByte = Quantity<struct SecondsPerByteTag, double>;
constexpr Seconds operator*(SecondsPerByte pace, Bytes bytes) { return Seconds(pace.value() * bytes.as_double()); }

struct Link {
  Seconds alpha{0};         // latency
  Seconds gap{0};           // g, per message
  SecondsPerByte beta{0};   // 1 / bandwidth
  SecondsPerByte gamma{0};  // per byte reduced
  std::string source;       // "calibrated: ring traffic, 4 ranks", "emulated", a file

  Seconds port_time(Bytes bytes) const { return gap + beta * bytes; }
};

// "alpha 12.1 us, g 0.8 us, bandwidth 3.4 GB/s, reduction 8.1 GB/s"
std::string to_text(const Link& link);

}  // namespace annulet::cost
