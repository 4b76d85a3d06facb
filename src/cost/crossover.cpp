#include "annulet/cost/crossover.hpp"

#include <algorithm>
#include <cmath>

namespace annulet::cost {
namespace {

constexpr int kLargest = 40;  // 2^40 B

// Two algorithms of one collective.
class Pair {
 public:
  Pair(CollectiveShape a, CollectiveShape b, std::span<const Link> links) : a_(a), b_(b), links_(links) {}

  void add_crossovers(std::vector<Crossover>& found) {
    int before = 0;
    std::int64_t low = 1;
    for (int k = 0; k <= kLargest; ++k) {
      const std::int64_t high = std::int64_t{1} << k;
      const int sign = sign_at(high);
      if (sign == 0) continue;
      if (before != 0 && sign != before) found.push_back(crossover(low, high, before));
      before = sign, low = high;
    }
  }

 private:
  double time(CollectiveShape shape, std::int64_t bytes) const {
    shape.bytes = Bytes(bytes);
    return predicted_time(shape, links_).total().count();
  }

  // Above 0 where b is faster; 0 where both are the same but for rounding.
  int sign_at(std::int64_t bytes) const {
    const double a = time(a_, bytes), b = time(b_, bytes);
    if (std::abs(a - b) <= 1e-12 * a) return 0;
    return a > b ? 1 : -1;
  }

  // The sign is `sign` at low and no longer at high.
  Crossover crossover(std::int64_t low, std::int64_t high, int sign) const {
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      (sign_at(middle) == sign ? low : high) = middle;
    }
    const bool a_below = sign < 0;
    return {(a_below ? a_ : b_).algorithm, (a_below ? b_ : a_).algorithm, Bytes(high), Seconds(time(a_, high))};
  }

  CollectiveShape a_, b_;
  std::span<const Link> links_;
};

}  // namespace

std::vector<Crossover> crossovers(schedule::Collective collective, int ranks, std::span<const Link> links) {
  const auto algorithms = schedule::algorithms_of(collective);
  std::vector<Crossover> found;
  for (std::size_t a = 0; a < algorithms.size(); ++a) {
    for (std::size_t b = a + 1; b < algorithms.size(); ++b) {
      const CollectiveShape of_a{collective, algorithms[a], Bytes(0), ranks},
          of_b{collective, algorithms[b], Bytes(0), ranks};
      Pair(of_a, of_b, links).add_crossovers(found);
    }
  }
  std::ranges::stable_sort(found, {}, &Crossover::size);
  return found;
}

}  // namespace annulet::cost
