#include "bench_vector.hpp"

#include <algorithm>
#include <cstdint>

#include "annulet/base/aligned.hpp"

namespace annulet::measure {
namespace {

constexpr std::uint64_t kScatter = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio: neighbours fall far apart

int of_element(Elements i) { return 1 + static_cast<int>((static_cast<std::uint64_t>(i) * kScatter) >> 61); }  // 1..8

// Ranks differ, up to 509 of them, and sums of eight thousand are exact in float.
int of_rank(int rank) { return 1 + rank % 509; }

template <class T>
class Typed final : public BenchVector {
 public:
  explicit Typed(Elements elements) : data_(static_cast<std::size_t>(elements)) {}

  const collectives::ElementType& element() const override { return collectives::sum_of<T>(); }
  std::span<std::byte> bytes(schedule::Interval part) override { return std::as_writable_bytes(values(part)); }

  void fill(schedule::Interval part, int rank) override {
    Elements i = part.first;
    for (T& value : values(part)) value = static_cast<T>(of_element(i++) * of_rank(rank));
  }

  void clear(schedule::Interval part) override { std::ranges::fill(values(part), T{}); }

  std::int64_t count_wrong(schedule::Interval part, int first, int end) const override {
    int ranks = 0;
    for (int rank = first; rank < end; ++rank) ranks += of_rank(rank);
    std::int64_t wrong = 0;
    for (Elements i = part.first; i < part.end(); ++i) {
      const T expected = static_cast<T>(of_element(i) * ranks);
      wrong += !(data_[static_cast<std::size_t>(i)] == expected);
    }
    return wrong;
  }

 private:
  std::span<T> values(schedule::Interval part) {
    return std::span(data_).subspan(static_cast<std::size_t>(part.first), static_cast<std::size_t>(part.count));
  }

  AlignedVector<T> data_;
};

}  // namespace

std::unique_ptr<BenchVector> make_bench_vector(NumberType type, Elements elements) {
  if (type == NumberType::float64) return std::make_unique<Typed<double>>(elements);
  if (type == NumberType::int32) return std::make_unique<Typed<std::int32_t>>(elements);
  return std::make_unique<Typed<float>>(elements);
}

}  // namespace annulet::measure
