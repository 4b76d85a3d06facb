#include "compression_pace.hpp"

#include <algorithm>
#include <vector>

#include "annulet/base/aligned.hpp"
#include "annulet/base/random.hpp"
#include "annulet/collectives/element.hpp"
#include "annulet/parallel/top_k.hpp"

namespace annulet::train {
namespace {

constexpr std::size_t kFloats = std::size_t{1} << 20, kSegment = std::size_t{1} << 16;
constexpr std::size_t kTaken = kFloats / 16;
constexpr int kPasses = 7;

template <class Work>
cost::SecondsPerByte pace(std::size_t bytes, Work work) {
  Seconds quickest = Seconds::max();
  for (int pass = 0; pass < kPasses; ++pass) {
    const Instant begin = Clock::now();
    work();
    quickest = std::min<Seconds>(quickest, Clock::now() - begin);
  }
  return cost::SecondsPerByte(quickest.count() / static_cast<double>(bytes));
}

cost::SecondsPerByte narrowing_pace(std::span<float> values) {
  const collectives::WireType& wire = collectives::bfloat16();
  AlignedVector<std::byte> narrow(kSegment * wire.size);
  return pace(2 * kFloats * wire.size, [&] {
    for (std::size_t first = 0; first < kFloats; first += kSegment) {
      std::byte* elements = std::as_writable_bytes(values.subspan(first, kSegment)).data();
      wire.encode(narrow.data(), elements, static_cast<Elements>(kSegment));
      wire.decode(elements, narrow.data(), static_cast<Elements>(kSegment));
    }
  });
}

}  // namespace

CompressionPaces compression_paces() {
  const RandomStream stream(1, "compression pace");
  AlignedVector<float> gradient(kFloats), residual(kFloats);
  for (std::size_t i = 0; i < kFloats; ++i) gradient[i] = static_cast<float>(stream.normal(i));
  MemoryAccount account("compression pace");
  parallel::TopK<float> top_k(static_cast<Elements>(kFloats), account);
  std::vector<std::byte> values(kTaken * sizeof(float));
  std::vector<std::uint32_t> positions(kTaken);
  CompressionPaces paces;
  paces.choosing = pace(kFloats * sizeof(float), [&] { top_k.take(residual, gradient, {values, positions}); });
  paces.spreading = pace(kTaken * (sizeof(float) + sizeof(std::uint32_t)),
                         [&] { parallel::add_taken<float>(gradient, values, positions); });
  paces.narrowing = narrowing_pace(residual);
  return paces;
}

}  // namespace annulet::train
