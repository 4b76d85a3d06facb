#include "annulet/parallel/exact_control.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <mutex>
#include <set>

#include "collectives/in_process_ranks.hpp"

namespace annulet::parallel {
namespace {

// 24 losses and 24 gradients, shared out evenly.
std::set<std::pair<double, double>> agreed_by(int world) {
  std::set<std::pair<double, double>> results;
  std::mutex mutex;
  collectives::run_ranks(world, [&](int rank, std::unique_ptr<comm::Transport> transport) {
    collectives::Engine engine(std::move(transport), {});
    ExactControl control(engine);
    ExactRecord mine;
    for (int i = rank; i < 24; i += world) {
      const double value = std::exp2(i * 7 % 24) * std::sin(i + 1.0), loss = std::abs(value);
      mine.loss.add(std::span(&loss, 1));
      mine.squared_norm.add_squares(std::span(&value, 1));
      ++mine.targets, mine.correct += i % 3 == 0 ? 1 : 0;
    }
    for (int step = 0; step < 2; ++step) {
      const ControlRecord all = control.agree(mine);
      EXPECT_EQ(all.targets, 24);
      EXPECT_EQ(all.correct, 8);
      EXPECT_EQ(all.lowest_bad_rank, ControlRecord::kNobody);
      const std::lock_guard lock(mutex);
      results.emplace(all.loss, all.squared_norm);
    }
  });
  return results;
}

TEST(ExactControl, AgreesOnTheSameBitsOnAnyNumberOfRanks) {
  const auto alone = agreed_by(1);
  EXPECT_EQ(alone.size(), 1U);
  for (const int world : {2, 3, 5, 8}) EXPECT_EQ(agreed_by(world), alone) << world;
}

TEST(ExactControl, NamesTheLowestBadRankAndKeepsNaN) {
  collectives::run_ranks(4, [&](int rank, std::unique_ptr<comm::Transport> transport) {
    collectives::Engine engine(std::move(transport), {});
    ExactControl control(engine);
    ExactRecord mine;
    mine.bad = rank >= 2;
    const double loss = rank == 3 ? std::numeric_limits<double>::quiet_NaN() : 1;
    mine.loss.add(std::span(&loss, 1));
    const ControlRecord all = control.agree(mine);
    EXPECT_EQ(all.lowest_bad_rank, 2);
    EXPECT_TRUE(std::isnan(all.loss));
  });
}

}  // namespace
}  // namespace annulet::parallel
