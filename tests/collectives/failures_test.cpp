// A rank that never comes, and one with another number of elements, in every algorithm of every collective: whoever is
// concerned says which collective, how far it is and which rank, within the deadline.
#include <gmock/gmock.h>

#include <barrier>

#include "annulet/base/error.hpp"
#include "annulet/collectives/engine.hpp"
#include "annulet/schedule/algorithms.hpp"
#include "collectives/in_process_ranks.hpp"

namespace annulet::collectives {
namespace {

using schedule::Algorithm;
using schedule::Collective;
using testing::AllOf;
using testing::AnyOf;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;

constexpr int kRanks = 4;
constexpr Seconds kDeadline{0.04};

// What each rank that failed said. `elements_of(rank)`: none for a rank that does not come.
template <class ElementsOf>
std::vector<std::string> errors_of(Collective collective, Algorithm algorithm, ElementsOf elements_of) {
  std::vector<std::string> errors;
  std::mutex mutex;
  std::barrier all_ended(kRanks);  // until then peers may still write into a rank's memory
  run_ranks(kRanks, [&](int rank, std::unique_ptr<comm::Transport> transport) {
    const Elements n = elements_of(rank);
    std::vector<float> data(static_cast<std::size_t>(n));
    Engine engine(std::move(transport), {.deadline = kDeadline});
    const auto id =
        engine.declare({"pressures", comm::Purpose::other, sum_of<float>(),
                        std::make_shared<schedule::Plan>(make_plan(collective, algorithm, {rank, kRanks, n, 16, 2, 1})),
                        std::as_writable_bytes(std::span(data))});
    try {
      if (n > 0) engine.launch(id), engine.wait(id);
    } catch (const RunError& error) {
      const std::lock_guard lock(mutex);
      errors.emplace_back(error.what());
    }
    all_ended.arrive_and_wait();
  });
  return errors;
}

template <class Check>
void for_every_algorithm(Check check) {
  for (const Collective collective : schedule::collectives()) {
    for (const Algorithm algorithm : schedule::algorithms_of(collective)) {
      SCOPED_TRACE(testing::Message() << to_text(collective) << " by " << to_text(algorithm));
      check(collective, algorithm);
    }
  }
}

TEST(AStoppedRank, IsNamedWithCollectiveAndStepsByThoseThatWaitForItInEveryAlgorithm) {
  for_every_algorithm([](Collective collective, Algorithm algorithm) {
    for (const int stopped : {1, 3}) {  // the root, and one that is none
      const Instant begin = Clock::now();
      const auto errors = errors_of(collective, algorithm, [&](int rank) { return rank == stopped ? 0 : 100; });
      EXPECT_THAT(errors, Each(AllOf(HasSubstr("nothing has moved for"), HasSubstr("pressures: "),
                                     HasSubstr("steps done, waiting for "))));
      const std::string name = std::to_string(stopped);
      EXPECT_THAT(errors, Contains(AnyOf(HasSubstr("from rank " + name), HasSubstr("by rank " + name))));
      EXPECT_LT(Seconds(Clock::now() - begin).count(), 50 * kDeadline.count());
    }
  });
}

// 40 elements go in other pieces than 41, and 48 in fewer than 49.
TEST(AnotherSizeOnOneRank, IsFoundAndNamedInEveryAlgorithmThoughNobodyComparedSizesBefore) {
  for_every_algorithm([](Collective collective, Algorithm algorithm) {
    for (const Elements n : {40, 48}) {
      const auto errors = errors_of(collective, algorithm, [&](int rank) { return rank == 2 ? n + 1 : n; });
      EXPECT_THAT(errors, Contains(AnyOf(HasSubstr("expected"), HasSubstr("waiting for"))));
      EXPECT_THAT(errors, Each(HasSubstr("rank ")));
    }
  });
}

}  // namespace
}  // namespace annulet::collectives
