#include "measure/bench_vector.hpp"

#include <gtest/gtest.h>

#include "annulet/base/error.hpp"
#include "annulet/measure/bench.hpp"

namespace annulet::measure {
namespace {

// The sum of three ranks' vectors, made by the element type itself.
std::unique_ptr<BenchVector> sum_of_three(NumberType type, Elements n) {
  auto sum = make_bench_vector(type, n), other = make_bench_vector(type, n);
  sum->fill({0, n}, 0);
  for (const int rank : {1, 2}) {
    other->fill({0, n}, rank);
    sum->element().combine(sum->bytes({0, n}).data(), other->bytes({0, n}).data(), n);
  }
  return sum;
}

TEST(BenchVector, KnowsTheSumOfAllRanksInEveryElement) {
  for (const NumberType type : {NumberType::float32, NumberType::float64, NumberType::int32}) {
    const auto vector = sum_of_three(type, 1000);
    EXPECT_EQ(vector->count_wrong({0, 1000}, 0, 3), 0);
    EXPECT_EQ(vector->count_wrong({0, 1000}, 0, 2), 1000);  // a rank is missing
  }
}

TEST(BenchVector, KnowsMaximaAndAverages) {
  auto maximum = make_bench_vector(NumberType::float32, 100, Reduction::maximum);
  maximum->fill({0, 100}, 2);
  EXPECT_EQ(maximum->count_wrong({0, 100}, 0, 3), 0);
  EXPECT_EQ(maximum->count_wrong({0, 100}, 0, 2), 100);
  auto average = make_bench_vector(NumberType::float64, 100, Reduction::average);
  average->fill({0, 100}, 1);  // of ranks 0 to 2
  EXPECT_EQ(average->count_wrong({0, 100}, 0, 3), 0);
}

TEST(BenchVector, HasSumsThatBfloat16Holds) {
  auto sum = make_bench_vector(NumberType::bfloat16, 100), other = make_bench_vector(NumberType::bfloat16, 100);
  sum->fill({0, 100}, 0);
  for (int rank = 1; rank < kMostBfloat16Ranks; ++rank) {
    other->fill({0, 100}, rank);
    sum->element().combine(sum->bytes({0, 100}).data(), other->bytes({0, 100}).data(), 100);
    collectives::round_through_wire(sum->element(), sum->bytes({0, 100}));
  }
  EXPECT_EQ(sum->count_wrong({0, 100}, 0, kMostBfloat16Ranks), 0);
}

TEST(BenchVector, CountsEveryElementThatIsNotWhereItBelongs) {
  const auto vector = sum_of_three(NumberType::float32, 1000);
  vector->clear({17, 3});
  EXPECT_EQ(vector->count_wrong({0, 1000}, 0, 3), 3);
  EXPECT_EQ(vector->count_wrong({0, 17}, 0, 3), 0);
  const auto moved = sum_of_three(NumberType::float32, 1000);
  const auto from = moved->bytes({1, 500});
  std::ranges::copy(std::vector<std::byte>(from.begin(), from.end()), moved->bytes({0, 500}).begin());
  EXPECT_GT(moved->count_wrong({0, 1000}, 0, 3), 400);
}

// Ranks 0 and 7 once had the same inputs: one of them twice, and the other missing, would have passed.
TEST(BenchVector, TellsEveryRankFromEveryOther) {
  const auto vector = make_bench_vector(NumberType::int32, 10);
  for (int rank = 1; rank < 100; ++rank) {
    vector->fill({0, 10}, rank);
    EXPECT_EQ(vector->count_wrong({0, 10}, 0, 1), 10) << rank;
    EXPECT_EQ(vector->count_wrong({0, 10}, rank, rank + 1), 0);
  }
}

TEST(Bench, IsRefusedWhereAnElementIsWrongOrBytesDisagree) {
  BenchRow row;
  row.wire = row.planned = row.formula = Bytes(8);
  const BenchRow mpi{.contender = {Contender::Kind::mpi}};
  EXPECT_NO_THROW(require_right(std::vector{row, mpi}));
  BenchRow wrong = row, lost = row;
  wrong.wrong = 1;
  EXPECT_THROW(require_right(std::vector{row, wrong}), RunError);
  lost.wire = Bytes(4);
  EXPECT_THROW(require_right(std::vector{row, lost}), RunError);
}

}  // namespace
}  // namespace annulet::measure
