// Every algorithm of every collective with real numbers, between the ranks of one process.
#include "annulet/schedule/algorithms.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <optional>

#include "annulet/collectives/engine.hpp"
#include "annulet/schedule/out_of_place.hpp"
#include "annulet/schedule/sparse_all_gather.hpp"
#include "collectives/in_process_ranks.hpp"

namespace annulet::collectives {
namespace {

using schedule::Algorithm;
using schedule::Collective;
using schedule::PlanShape;

struct Choice {
  Collective collective;
  Algorithm algorithm;
};

std::vector<Choice> choices() {
  std::vector<Choice> all;
  for (const Collective collective : schedule::collectives()) {
    for (const Algorithm algorithm : schedule::algorithms_of(collective)) all.push_back({collective, algorithm});
  }
  return all;
}

std::string name(const testing::TestParamInfo<Choice>& info) {
  return std::string(to_text(info.param.collective)) + "_by_" + std::string(to_text(info.param.algorithm));
}

using Number = float (*)(int rank, Elements element);

// Sums are exact in float.
float integer(int rank, Elements element) { return static_cast<float>((rank * 7 + element * 3) % 101 + 1); }

// Sums depend on their order.
float fraction(int rank, Elements element) { return 1.0F / static_cast<float>(1 + rank * 31 + element); }

float sum_in_rank_order(int world, Elements element, Number number) {
  float sum = number(0, element);
  for (int r = 1; r < world; ++r) sum += number(r, element);
  return sum;
}

bool owns(const PlanShape& shape, int rank, Elements element) {
  const schedule::Interval own = schedule::chunk(shape.elements, shape.world, rank);
  return own.first <= element && element < own.end();
}

constexpr float kNothing = -1;  // where a rank holds no input

float before(Collective collective, const PlanShape& shape, Elements element, Number number) {
  const bool holds = collective == Collective::all_gather  ? owns(shape, shape.rank, element)
                     : collective == Collective::broadcast ? shape.rank == shape.root
                                                           : true;
  return holds ? number(shape.rank, element) : kNothing;
}

// Nothing where the collective leaves what it likes.
std::optional<float> after(Collective collective, const PlanShape& shape, Elements element) {
  const float sum = sum_in_rank_order(shape.world, element, integer);
  switch (collective) {
    case Collective::all_reduce:
      return sum;
    case Collective::reduce_scatter:
      return owns(shape, shape.rank, element) ? std::optional(sum) : std::nullopt;
    case Collective::all_gather:
      for (int r = 0; r < shape.world; ++r) {
        if (owns(shape, r, element)) return integer(r, element);
      }
      return std::nullopt;
    case Collective::broadcast:
      return integer(shape.root, element);
    case Collective::reduce:
      return shape.rank == shape.root ? std::optional(sum) : std::nullopt;
  }
  return std::nullopt;
}

OperationSpec spec(std::vector<float>& data, schedule::Plan plan, const ElementType& element = sum_of<float>()) {
  return {"test",
          comm::Purpose::gradients,
          element,
          std::make_shared<schedule::Plan>(std::move(plan)),
          std::as_writable_bytes(std::span(data)),
          [element](std::span<std::byte> result) { round_through_wire(element, result); }};
}

void run(Engine& engine, OperationId id) {
  engine.launch(id);
  engine.wait(id);
}

// The data of every rank after a collective.
std::vector<std::vector<float>> results_of(Choice choice, PlanShape shape, Number number,
                                           const ElementType& element = sum_of<float>()) {
  std::vector<std::vector<float>> results(static_cast<std::size_t>(shape.world));
  run_ranks(shape.world, [&](int rank, std::unique_ptr<comm::Transport> transport) {
    PlanShape mine = shape;
    mine.rank = rank;
    std::vector<float> data;
    for (Elements i = 0; i < mine.elements; ++i) data.push_back(before(choice.collective, mine, i, number));
    Engine engine(std::move(transport), {.deadline = Seconds(20)});
    run(engine, engine.declare(spec(data, schedule::make_plan(choice.collective, choice.algorithm, mine), element)));
    EXPECT_EQ(engine.traffic().posted, engine.traffic().completed);
    EXPECT_EQ(engine.traffic()[comm::Purpose::gradients].value(),
              static_cast<Elements>(element.wire_size()) *
                  schedule::planned_sends(choice.collective, choice.algorithm, mine));
    results[static_cast<std::size_t>(rank)] = std::move(data);
  });
  return results;
}

class EveryAlgorithm : public testing::TestWithParam<Choice> {};

TEST_P(EveryAlgorithm, GivesTheExactResultAndSendsWhatIsStated) {
  for (int p = 1; p <= 8; ++p) {
    for (const Elements n : {0, 1, 2, p - 1, p, p + 1, 1000}) {
      const PlanShape shape{0, p, n, n == 1000 ? 64 : 2, 2, p / 2};
      SCOPED_TRACE(testing::Message() << "p=" << p << " n=" << n);
      const auto results = results_of(GetParam(), shape, integer);
      for (int rank = 0; rank < p; ++rank) {
        PlanShape mine = shape;
        mine.rank = rank;
        for (Elements i = 0; i < n; ++i) {
          const float value = results[static_cast<std::size_t>(rank)][static_cast<std::size_t>(i)];
          const std::optional<float> wanted = after(GetParam().collective, mine, i);
          ASSERT_EQ(value, wanted.value_or(value)) << "rank " << rank << " element " << i;
        }
      }
    }
  }
}

TEST_P(EveryAlgorithm, GivesTheSameBitsOutOfPlaceAndLeavesTheInputAlone) {
  for (int p = 1; p <= 8; ++p) {
    for (const Elements n : {0, 1, p + 1, 257}) {
      const PlanShape shape{0, p, n, n == 257 ? 16 : 2, 2, p / 2};
      SCOPED_TRACE(testing::Message() << "p=" << p << " n=" << n);
      const auto wanted = results_of(GetParam(), shape, fraction);
      run_ranks(p, [&](int rank, std::unique_ptr<comm::Transport> transport) {
        PlanShape mine = shape;
        mine.rank = rank;
        std::vector<float> input, output(static_cast<std::size_t>(n), kNothing);
        for (Elements i = 0; i < n; ++i) input.push_back(before(GetParam().collective, mine, i, fraction));
        const std::vector<float> copy = input;
        OperationSpec operation =
            spec(output, out_of_place(make_plan(GetParam().collective, GetParam().algorithm, mine),
                                      contribution(GetParam().collective, mine)));
        operation.input = std::as_bytes(std::span(input));
        Engine engine(std::move(transport), {.deadline = Seconds(20)});
        run(engine, engine.declare(std::move(operation)));
        EXPECT_EQ(output, wanted[static_cast<std::size_t>(rank)]);
        EXPECT_EQ(input, copy);
      });
    }
  }
}

INSTANTIATE_TEST_SUITE_P(InProcess, EveryAlgorithm, testing::ValuesIn(choices()), name);

std::vector<std::uint32_t> bits(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

TEST(AllReduce, GivesTheSameBitsOnAllRanksAndInEveryRunByEveryAlgorithm) {
  for (const Algorithm algorithm : schedule::algorithms_of(Collective::all_reduce)) {
    for (const int p : {3, 5, 8}) {
      const PlanShape shape{0, p, 1003, 50, 2};
      const auto results = results_of({Collective::all_reduce, algorithm}, shape, fraction);
      const auto again = results_of({Collective::all_reduce, algorithm}, shape, fraction);
      for (const auto& result : results) ASSERT_EQ(bits(result), bits(results[0])) << to_text(algorithm) << " p=" << p;
      ASSERT_EQ(bits(again[0]), bits(results[0])) << to_text(algorithm) << " p=" << p;
    }
  }
}

// A hop rounds by at most 2^-9 of the partial sum, and there are at most 2 p of them.
TEST(AllReduce, OverBfloat16GivesTheSameBitsOnAllRanksByEveryAlgorithm) {
  for (const Algorithm algorithm : schedule::algorithms_of(Collective::all_reduce)) {
    for (int p = 2; p <= 8; ++p) {
      const PlanShape shape{0, p, 1003, 50, 2};
      const Choice choice{Collective::all_reduce, algorithm};
      const auto results = results_of(choice, shape, fraction, over_bfloat16(sum_of<float>()));
      const auto again = results_of(choice, shape, fraction, over_bfloat16(sum_of<float>()));
      for (const auto& result : results) ASSERT_EQ(bits(result), bits(results[0])) << to_text(algorithm) << " p=" << p;
      ASSERT_EQ(bits(again[0]), bits(results[0])) << to_text(algorithm) << " p=" << p;
      for (Elements i = 0; i < shape.elements; ++i) {
        const float sum = sum_in_rank_order(p, i, fraction), ours = results[0][static_cast<std::size_t>(i)];
        ASSERT_TRUE(std::abs(ours - sum) <= static_cast<float>(2 * p) * 0x1p-9F * sum) << to_text(algorithm) << p;
      }
    }
  }
}

TEST(Broadcast, OverBfloat16LeavesTheSameBitsAlsoOnTheRoot) {
  for (const Algorithm algorithm : schedule::algorithms_of(Collective::broadcast)) {
    const auto results = results_of({Collective::broadcast, algorithm}, {0, 5, 1003, 50, 2, 2}, fraction,
                                    over_bfloat16(sum_of<float>()));
    for (const auto& result : results) EXPECT_EQ(bits(result), bits(results[2])) << to_text(algorithm);
    EXPECT_NE(results[2][2], fraction(2, 2));
  }
}

TEST(AllReduce, DirectlyAddsInRankOrderOnEveryRank) {
  const PlanShape shape{0, 7, 1003, 50, 2};
  std::vector<float> wanted;
  for (Elements i = 0; i < shape.elements; ++i) wanted.push_back(sum_in_rank_order(shape.world, i, fraction));
  for (const auto& result : results_of({Collective::all_reduce, Algorithm::direct}, shape, fraction))
    EXPECT_EQ(bits(result), bits(wanted));
}

TEST(SparseAllGather, BringsPiecesOfAnyLengthToEveryRank) {
  const std::vector<Elements> lengths{3, 0, 41, 7, 0};
  run_ranks(5, [&](int rank, std::unique_ptr<comm::Transport> transport) {
    std::vector<float> data(51, kNothing), wanted;
    for (int r = 0; r < 5; ++r) {
      for (Elements i = 0; i < lengths[static_cast<std::size_t>(r)]; ++i) {
        wanted.push_back(integer(r, i));
        if (r == rank) data[wanted.size() - 1] = wanted.back();
      }
    }
    Engine engine(std::move(transport), {.deadline = Seconds(20)});
    run(engine, engine.declare(spec(data, schedule::sparse_all_gather({rank, lengths}))));
    EXPECT_EQ(data, wanted);
    EXPECT_EQ(engine.traffic()[comm::Purpose::gradients].value(),
              4 * schedule::sparse_all_gather_sends({rank, lengths}));
  });
}

}  // namespace
}  // namespace annulet::collectives
