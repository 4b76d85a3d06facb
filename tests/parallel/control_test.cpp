#include "annulet/parallel/control.hpp"

#include <gtest/gtest.h>

#include "collectives/in_process_ranks.hpp"

namespace annulet::parallel {
namespace {

TEST(Control, AddsSumsAndTakesTheLowestBadRank) {
  for (const int world : {1, 2, 3, 5, 8}) {
    collectives::run_ranks(world, [&](int rank, std::unique_ptr<comm::Transport> transport) {
      collectives::Engine engine(std::move(transport), {});
      Control control(engine);
      ControlRecord mine{1.5, 2, 3, 0.25};
      if (rank > 0) mine.lowest_bad_rank = rank;
      for (int round = 0; round < 3; ++round) {
        const ControlRecord all = control.agree(mine);
        EXPECT_EQ(all.loss, 1.5 * world);
        EXPECT_EQ(all.correct, 2.0 * world);
        EXPECT_EQ(all.targets, 3.0 * world);
        EXPECT_EQ(all.squared_norm, 0.25 * world);
        EXPECT_EQ(all.lowest_bad_rank, world == 1 ? ControlRecord::kNobody : 1);
        EXPECT_EQ(all.mean_loss(), 0.5);
      }
      EXPECT_EQ(engine.traffic()[comm::Purpose::gradients], Bytes(0));
    });
  }
}

}  // namespace
}  // namespace annulet::parallel
