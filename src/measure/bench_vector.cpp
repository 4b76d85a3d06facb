#include "bench_vector.hpp"

#include <algorithm>
#include <cstdint>

#include "annulet/base/aligned.hpp"

namespace annulet::measure {
namespace {

constexpr std::uint64_t kScatter = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio: neighbours fall far apart

int one_of_eight(Elements i) { return static_cast<int>((static_cast<std::uint64_t>(i) * kScatter) >> 61); }

// Values: 1..8, so that sums of eight thousand times are exact in float; in bfloat16 powers of two, which cost no bit.
int of_element(Elements i, NumberType type) {
  return type == NumberType::bfloat16 ? 1 << one_of_eight(i) : 1 + one_of_eight(i);
}

int of_rank(int rank) { return 1 + rank % 509; }  // ranks differ, up to 509 of them

template <class T>
collectives::ElementType element_type(NumberType type, Reduction reduction) {
  const auto& element = reduction == Reduction::maximum ? collectives::maximum_of<T>() : collectives::sum_of<T>();
  return type == NumberType::bfloat16 ? collectives::over_bfloat16(element) : element;
}

template <class T>
class Typed final : public BenchVector {
 public:
  Typed(NumberType type, Elements elements, Reduction reduction)
      : type_(type),
        reduction_(reduction),
        element_(element_type<T>(type, reduction)),
        data_(static_cast<std::size_t>(elements)) {}

  const collectives::ElementType& element() const override { return element_; }
  std::span<std::byte> bytes(schedule::Interval part) override { return std::as_writable_bytes(values(part)); }

  void fill(schedule::Interval part, int rank) override {
    Elements i = part.first;
    for (T& value : values(part)) value = static_cast<T>(of_element(i++, type_) * of_rank(rank));
  }

  void clear(schedule::Interval part) override { std::ranges::fill(values(part), T{}); }

  void divide(schedule::Interval part, int by) override {
    for (T& value : values(part)) value /= static_cast<T>(by);
  }

  std::int64_t count_wrong(schedule::Interval part, int first, int end) const override {
    int ranks = 0;
    for (int rank = first; rank < end; ++rank) {
      ranks = reduction_ == Reduction::maximum ? std::max(ranks, of_rank(rank)) : ranks + of_rank(rank);
    }
    const T parts = static_cast<T>(reduction_ == Reduction::average ? end - first : 1);
    std::int64_t wrong = 0;
    for (Elements i = part.first; i < part.end(); ++i) {
      const T expected = static_cast<T>(of_element(i, type_) * ranks) / parts;
      wrong += !(data_[static_cast<std::size_t>(i)] == expected);
    }
    return wrong;
  }

 private:
  std::span<T> values(schedule::Interval part) {
    return std::span(data_).subspan(static_cast<std::size_t>(part.first), static_cast<std::size_t>(part.count));
  }

  NumberType type_;
  Reduction reduction_;
  collectives::ElementType element_;
  AlignedVector<T> data_;
};

}  // namespace

std::unique_ptr<BenchVector> make_bench_vector(NumberType type, Elements elements, Reduction reduction) {
  if (type == NumberType::float64) return std::make_unique<Typed<double>>(type, elements, reduction);
  if (type == NumberType::int32) return std::make_unique<Typed<std::int32_t>>(type, elements, reduction);
  return std::make_unique<Typed<float>>(type, elements, reduction);
}

}  // namespace annulet::measure
