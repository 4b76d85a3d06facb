#include "annulet/base/random.hpp"

#include <cmath>
#include <numbers>

namespace annulet {
namespace {

std::uint64_t join(std::uint32_t high, std::uint32_t low) { return (std::uint64_t{high} << 32) | low; }

double unit_interval(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1.0p-53; }

}  // namespace

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> c, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t even = std::uint64_t{0xD2511F53} * c[0], odd = std::uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<std::uint32_t>(odd >> 32) ^ c[1] ^ key[0], static_cast<std::uint32_t>(odd),
         static_cast<std::uint32_t>(even >> 32) ^ c[3] ^ key[1], static_cast<std::uint32_t>(even)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return c;
}

RandomStream::RandomStream(std::uint64_t seed, std::string_view purpose)
    : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}, purpose_(stable_hash(purpose)) {}

std::array<std::uint32_t, 4> RandomStream::words(std::uint64_t index) const {
  return philox4x32({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
                     static_cast<std::uint32_t>(purpose_), static_cast<std::uint32_t>(purpose_ >> 32)},
                    key_);
}

std::uint64_t RandomStream::bits(std::uint64_t index) const {
  const auto block = words(index);
  return join(block[1], block[0]);
}

double RandomStream::uniform(std::uint64_t index) const { return unit_interval(bits(index)); }

double RandomStream::uniform(std::uint64_t index, double low, double high) const {
  return low + (high - low) * uniform(index);
}

double RandomStream::normal(std::uint64_t index) const {
  const auto block = words(index);
  const double radius = std::sqrt(-2 * std::log1p(-unit_interval(join(block[1], block[0]))));
  return radius * std::cos(2 * std::numbers::pi * unit_interval(join(block[3], block[2])));
}

std::uint64_t RandomStream::below(std::uint64_t index, std::uint64_t bound) const {
  return static_cast<std::uint64_t>((static_cast<unsigned __int128>(bits(index)) * bound) >> 64);
}

std::uint64_t stable_hash(std::string_view text, std::uint64_t start) {
  std::uint64_t hash = start;
  for (const char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3ULL;
  return hash;
}

}  // namespace annulet
