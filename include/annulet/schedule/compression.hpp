#pragma once
// How gradients are made smaller on the wire.
//   none     values travel as they are
//   bf16     as bfloat16, half of a float; they are still added on the way, in float: a dense collective of half the
//            bytes
//   topk:D   of each tensor of n values the k = ceil(n / D) largest by magnitude, each with its position in its bucket
//            (4 bytes); what is not sent is added to the next step's gradient (error feedback: Stich et al. 2018,
//            arXiv:1809.07599; Lin et al. 2018, arXiv:1712.01887). They cannot be added on the way: a rank sends
//            (p-1) payload where a dense ring sends 2 (p-1)/p M, so that they stop paying at p = 2 M / payload
#include <string>
#include <string_view>

#include "annulet/base/units.hpp"

namespace annulet::schedule {

struct Compression {
  enum class Kind { none, bfloat16, top_k };
  Kind kind = Kind::none;
  Elements one_in = 1;  // top_k: D

  friend bool operator==(const Compression&, const Compression&) = default;
};

// "none", "bf16", "topk:16". Throws InputError.
Compression parse_compression(std::string_view text);
std::string to_text(const Compression& compression);

// Of a position in a bucket under way.
constexpr Bytes kPositionBytes{4};

// How many of n values top_k sends: ceil(n / one_in).
Elements top_k_count(Elements n, Elements one_in);

// One of a bucket's elements under way, `element` bytes in memory; of top_k a value with its position.
Bytes travelling_bytes(Bytes element, const Compression& compression);

}  // namespace annulet::schedule
