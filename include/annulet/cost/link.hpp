#pragma once
// A link in the alpha-beta model (Hockney 1994; with a gap per message as in LogGP, Alexandrov et al. 1995):
// a message of n bytes occupies the sender's port for g + n beta and arrives alpha after it has left.
// MPI is piecewise: it sends up to the eager limit at once and asks before it sends more (rendezvous), so small
// messages may have an alpha, g and beta of their own. Adding n received bytes to n others costs n gamma at the
// receiver. A card whose rate is limited by a token bucket, as clouds do and scripts/cluster.sh does, lets a burst of
// bytes pass at a pace of their own after it was idle: it fills at 1 / beta, and what passes empties it.
#include <optional>
#include <string>

#include "annulet/base/units.hpp"

namespace annulet::cost {

// Seconds per byte, sent or reduced.
using SecondsPerByte = Quantity<struct SecondsPerByteTag, double>;
constexpr Seconds operator*(SecondsPerByte pace, Bytes bytes) { return Seconds(pace.value() * bytes.as_double()); }

// Messages of up to `limit` bytes.
struct EagerLink {
  Bytes limit{0};
  Seconds alpha{0};
  Seconds gap{0};
  SecondsPerByte beta{0};
};

struct Link {
  Seconds alpha{0};                  // latency
  Seconds gap{0};                    // g, per message
  SecondsPerByte beta{0};            // 1 / bandwidth
  SecondsPerByte gamma{0};           // per byte reduced
  std::string source{};              // "calibrated: ring traffic, 4 ranks", "emulated", a file
  std::optional<EagerLink> eager{};  // of small messages; absent: the same for all sizes
  SecondsPerByte moving{};      // of a core, per byte that it sends or receives; 0: unknown, and none in simulations
  Bytes burst{0};               // what the bucket holds
  SecondsPerByte burst_pace{};  // of bytes that it lets pass, at most beta
  bool core_is_port = false;    // the core that adds is what moves the bytes: never both at once

  bool is_eager(Bytes bytes) const { return eager && bytes <= eager->limit; }
  Seconds latency(Bytes bytes) const { return is_eager(bytes) ? eager->alpha : alpha; }
  Seconds gap_of(Bytes bytes) const { return is_eager(bytes) ? eager->gap : gap; }
  SecondsPerByte pace(Bytes bytes) const { return is_eager(bytes) ? eager->beta : beta; }
  Seconds port_time(Bytes bytes) const { return gap_of(bytes) + pace(bytes) * bytes; }
};

// "alpha 12.1 us, g 0.8 us, bandwidth 3.4 GB/s, reduction 8.1 GB/s"; with "; bursts of 12.3 kB at 1.1 GB/s" if it has
// such, and
// "; up to 4.096 kB: alpha ..." if it is piecewise.
std::string to_text(const Link& link);

}  // namespace annulet::cost
