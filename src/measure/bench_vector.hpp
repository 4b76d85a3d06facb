#pragma once
// The vector that a benchmark works on, of whichever number type: small integers that differ between neighbours and
// between ranks, as nccl-tests' `verifiable` has them, so that a sum is exact in float for up to a thousand ranks (in
// bfloat16 for up to kMostBfloat16Ranks) and no element can be missed, doubled or misplaced unseen.
#include <memory>
#include <span>

#include "annulet/collectives/element.hpp"
#include "annulet/measure/bench.hpp"
#include "annulet/schedule/chunks.hpp"

namespace annulet::measure {

class BenchVector {
 public:
  virtual ~BenchVector() = default;

  virtual const collectives::ElementType& element() const = 0;
  virtual std::span<std::byte> bytes(schedule::Interval part) = 0;

  // `rank`'s own values in `part`.
  virtual void fill(schedule::Interval part, int rank) = 0;
  virtual void clear(schedule::Interval part) = 0;
  virtual void divide(schedule::Interval part, int by) = 0;

  // How many elements of `part` are not the reduction of the values of ranks [first, end).
  virtual std::int64_t count_wrong(schedule::Interval part, int first, int end) const = 0;
};

std::unique_ptr<BenchVector> make_bench_vector(NumberType type, Elements elements,
                                               Reduction reduction = Reduction::sum);

}  // namespace annulet::measure
