#include "annulet/schedule/compression.hpp"

#include <fmt/format.h>

#include <charconv>

#include "annulet/base/error.hpp"

namespace annulet::schedule {
namespace {

constexpr std::string_view kTopK = "topk:";
constexpr Elements kSparsest = 1 << 20;
constexpr Bytes kBfloat16Bytes{2};

[[noreturn]] void refuse_compression(std::string_view text, std::string why) {
  throw InputError({fmt::format("'{}' is no compression", text), std::move(why),
                    "Choose none, bf16, or topk:16 for one value in 16"});
}

}  // namespace

Compression parse_compression(std::string_view text) {
  if (text == "none") return {};
  if (text == "bf16") return {Compression::Kind::bfloat16, 1};
  if (!text.starts_with(kTopK)) refuse_compression(text, "");
  const std::string_view number = text.substr(kTopK.size());
  Compression compression{Compression::Kind::top_k, 0};
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), compression.one_in);
  if (error != std::errc() || end != number.data() + number.size())
    refuse_compression(text, "a whole number follows topk:");
  if (compression.one_in < 1 || compression.one_in > kSparsest) {
    refuse_compression(text, fmt::format("one value in 1 to {} is sent", kSparsest));
  }
  return compression;
}

std::string to_text(const Compression& compression) {
  switch (compression.kind) {
    case Compression::Kind::none:
      return "none";
    case Compression::Kind::bfloat16:
      return "bf16";
    case Compression::Kind::top_k:
      return fmt::format("{}{}", kTopK, compression.one_in);
  }
  return "unknown";
}

Elements top_k_count(Elements n, Elements one_in) {
  ANNULET_EXPECTS(n >= 0 && one_in > 0, "one value in so many is sent");
  return n / one_in + (n % one_in != 0 ? 1 : 0);
}

Bytes travelling_bytes(Bytes element, const Compression& compression) {
  switch (compression.kind) {
    case Compression::Kind::none:
      return element;
    case Compression::Kind::bfloat16:
      return kBfloat16Bytes;
    case Compression::Kind::top_k:
      return element + kPositionBytes;
  }
  return element;
}

}  // namespace annulet::schedule
