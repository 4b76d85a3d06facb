#include "annulet/measure/clock_offset.hpp"

#include <gtest/gtest.h>

#include "annulet/base/error.hpp"
#include "collectives/in_process_ranks.hpp"

namespace annulet::measure {
namespace {

using collectives::run_ranks;

TEST(ClockOffset, IsWithinItsUncertaintyOfZeroInOneProcess) {
  for (const int world : {1, 2, 5}) {
    run_ranks(world, [&](int rank, std::unique_ptr<comm::Transport> transport) {
      const ClockOffset offset = clock_offset([&] { return std::move(transport); });
      EXPECT_LE(std::abs(offset.ahead.count()), offset.uncertainty.count() + 1e-9) << rank;
      EXPECT_EQ(offset.uncertainty == Seconds(0), rank == 0);
    });
  }
}

TEST(ClockOffset, GivesUpOnARankThatDoesNotAnswer) {
  run_ranks(2, [](int rank, std::unique_ptr<comm::Transport> transport) {
    if (rank == 0) return;
    EXPECT_THROW(clock_offset([&] { return std::move(transport); }, 1, Seconds(0.02)), RunError);
  });
}

}  // namespace
}  // namespace annulet::measure
