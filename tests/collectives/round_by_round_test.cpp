#include "annulet/collectives/round_by_round.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "annulet/schedule/algorithms.hpp"
#include "annulet/schedule/rounds.hpp"
#include "annulet/schedule/validator.hpp"
#include "collectives/in_process_ranks.hpp"

namespace annulet::collectives {
namespace {

using schedule::Algorithm;
using schedule::Collective;
using schedule::PlanShape;

std::vector<std::int32_t> numbers(std::span<const std::byte> bytes) {
  std::vector<std::int32_t> values(bytes.size() / sizeof(std::int32_t));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// Rank r brings bit r to every element, so that an element's value says whose contributions it holds.
void expect_promised(Collective collective, Algorithm algorithm, PlanShape shape) {
  std::vector<schedule::Plan> plans;
  for (shape.rank = 0; shape.rank < shape.world; ++shape.rank)
    plans.push_back(schedule::make_plan(collective, algorithm, shape));
  const schedule::Rounds rounds = schedule::rounds_of(plans);
  const schedule::Promise promise = schedule::promise_of(collective, shape);
  run_ranks(shape.world, [&](int rank, std::unique_ptr<comm::Transport> transport) {
    const auto r = static_cast<std::size_t>(rank);
    std::vector<std::int32_t> input;
    for (Elements e = 0; e < shape.elements; ++e) input.push_back(static_cast<std::int32_t>(promise.before(rank, e)));
    RoundByRound run(std::move(transport), {.deadline = Seconds(20)}, plans[r], rounds.of[r], rounds.count,
                     sum_of<std::int32_t>(), std::as_bytes(std::span(input)));
    EXPECT_EQ(numbers(run.data()), input);
    for (int k = 1; k <= rounds.count; ++k) run.launch(k), run.wait(k);
    const auto result = numbers(run.data());
    for (Elements e = 0; e < shape.elements; ++e) {
      const schedule::Contributions promised = promise.after(rank, e);
      if (promised != 0) {
        EXPECT_EQ(result[static_cast<std::size_t>(e)], static_cast<std::int32_t>(promised)) << rank << ' ' << e;
      }
    }
    EXPECT_EQ(run.sent(), Bytes(4) * schedule::sent_elements(plans[r]));
  });
}

TEST(RoundByRound, EveryCollectiveKeepsItsPromiseAndSendsItsPlan) {
  for (const Collective collective : schedule::collectives()) {
    for (const Algorithm algorithm : schedule::algorithms_of(collective)) {
      for (const int p : {1, 2, 3, 4, 5, 8}) {
        SCOPED_TRACE(testing::Message() << to_text(collective) << " by " << to_text(algorithm) << " p=" << p);
        expect_promised(collective, algorithm, {0, p, 2 * p + 1, 2, 2, p / 2});
      }
    }
  }
}

}  // namespace
}  // namespace annulet::collectives
