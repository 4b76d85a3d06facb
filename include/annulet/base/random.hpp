#pragma once
// Counter-based randomness: value i of a stream is a pure function of (seed, purpose, i), so that initial weights,
// shuffles and dropout masks never depend on the number of ranks or on the order in which they are drawn.
// Generator: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
#include <array>
#include <cstdint>
#include <string_view>

namespace annulet {

// The raw generator: a bijection of the 128-bit counter under a 64-bit key.
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

class RandomStream {
 public:
  // Streams with different `purpose` (for example a tensor's name) are independent.
  RandomStream(std::uint64_t seed, std::string_view purpose);

  std::uint64_t bits(std::uint64_t index) const;
  std::array<std::uint32_t, 4> words(std::uint64_t index) const;        // a whole block, for those who need many bits
  double uniform(std::uint64_t index) const;                            // in [0, 1), 53 bits
  double uniform(std::uint64_t index, double low, double high) const;   // in [low, high)
  double normal(std::uint64_t index) const;                             // mean 0, variance 1 (Box-Muller)
  std::uint64_t below(std::uint64_t index, std::uint64_t bound) const;  // in [0, bound), by multiplication

 private:
  std::array<std::uint32_t, 2> key_;
  std::uint64_t purpose_;
};

// FNV-1a, 64 bits: a stable hash for names and fingerprints (not for security).
std::uint64_t stable_hash(std::string_view text, std::uint64_t start = 0xcbf29ce484222325ULL);

}  // namespace annulet
