#include "annulet/report/collective_replay.hpp"

#include <gtest/gtest.h>

#include "annulet/cost/simulate.hpp"
#include "annulet/schedule/sparse_all_gather.hpp"
#include "report/replays.hpp"

namespace annulet::report {
namespace {

using schedule::Algorithm;
using schedule::Collective;
using schedule::Contributions;
using schedule::PlanShape;

// check(shape, collective, algorithm), for worlds of 1 to 8 and awkward lengths and segments.
template <class Check>
void for_every_collective(Check check) {
  for (const Collective collective : schedule::collectives()) {
    for (const Algorithm algorithm : schedule::algorithms_of(collective)) {
      for (int p = 1; p <= 8; ++p) {
        for (const Elements n : {0, 1, p, 2 * p + 1, 40}) {
          for (const Elements segment : {3, 64}) {
            const PlanShape shape{0, p, n, segment, 1 + p % 3, p / 2};
            SCOPED_TRACE(testing::Message() << to_text(collective) << " by " << to_text(algorithm) << " p=" << p
                                            << " n=" << n << " segment=" << segment);
            check(shape, collective, algorithm);
          }
        }
      }
    }
  }
}

TEST(CollectiveReplay, EndsWithWhatIsPromised) {
  for_every_collective([](const PlanShape& shape, Collective collective, Algorithm algorithm) {
    const Replay replay = replays::of(collective, algorithm, shape);
    const schedule::Promise promise = schedule::promise_of(collective, shape);
    for (int r = 0; r < shape.world; ++r) {
      const auto& held = replay.frames.back().held[static_cast<std::size_t>(r)];
      for (std::size_t p = 0; p < replay.pieces.size(); ++p) {
        if (replay.pieces[p].count == 0) continue;
        const Contributions promised = promise.after(r, replay.pieces[p].first);
        EXPECT_EQ(held[p].finished, promised != 0);
        if (promised != 0) {
          EXPECT_EQ(held[p].ranks, promised);
        }
      }
    }
  });
}

TEST(CollectiveReplay, CountsTheBytesThatArePlanned) {
  for_every_collective([](PlanShape shape, Collective collective, Algorithm algorithm) {
    const Replay replay = replays::of(collective, algorithm, shape);
    EXPECT_EQ(replay.sent(replay.rounds()),
              Bytes(4) * schedule::planned_total(collective, algorithm, shape.elements, shape.world));
    for (shape.rank = 0; shape.rank < shape.world; ++shape.rank) {
      EXPECT_EQ(replay.frames.back().sent[static_cast<std::size_t>(shape.rank)],
                Bytes(4) * schedule::planned_sends(collective, algorithm, shape));
    }
    EXPECT_EQ(replay.sent(0), Bytes(0));
  });
}

TEST(CollectiveReplay, TakesTheTimeThatTheWholePlansTakeAndNeverGoesBack) {
  for_every_collective([](const PlanShape& shape, Collective collective, Algorithm algorithm) {
    const Replay replay = replays::of(collective, algorithm, shape);
    const auto plans = replays::plans(collective, algorithm, shape);
    cost::LaunchedCollective whole{{}, Bytes(4), std::vector<Seconds>(plans.size(), Seconds(0))};
    for (const auto& plan : plans) whole.plans.push_back(&plan);
    const auto ends = cost::simulate(std::span(&whole, 1), replays::network()).front();
    EXPECT_DOUBLE_EQ(replay.frames.back().time.count(), std::ranges::max(ends).count());
    for (int k = 1; k <= replay.rounds(); ++k) {
      EXPECT_GE(replay.frames[static_cast<std::size_t>(k)].time, replay.frames[static_cast<std::size_t>(k) - 1].time);
    }
  });
}

TEST(CollectiveReplay, MarksWhatARoundBringsAndCutsOnlyWhereMessagesDo) {
  const Replay ring = replays::of(Collective::all_reduce, Algorithm::ring, {0, 4, 16});
  EXPECT_TRUE(ring.chunked);
  ASSERT_EQ(ring.rounds(), 6);
  for (int k = 0; k <= 6; ++k) {
    for (const auto& held : ring.frames[static_cast<std::size_t>(k)].held) {
      EXPECT_EQ(std::ranges::count(held, true, &HeldPiece::received), k == 0 ? 0 : 1);
      EXPECT_EQ(std::ranges::count(held, true, &HeldPiece::finished), std::max(0, k - 2));
    }
  }
  EXPECT_EQ(ring.frames[1].held[0][2].ranks, 0b1001U);
  EXPECT_FALSE(replays::of(Collective::all_reduce, Algorithm::ring, {0, 4, 16, 3}).chunked);
  EXPECT_TRUE(replays::of(Collective::all_reduce, Algorithm::recursive_doubling, {0, 4, 16}).chunked);
}

TEST(CollectiveReplay, AVectorMayBeAsLongAsItLikes) {
  const Elements parameters = 6738149376;
  const Replay replay = replays::of(Collective::all_reduce, Algorithm::ring, {0, 8, parameters, parameters});
  EXPECT_EQ(replay.sent(14), Bytes(4) * (14 * parameters));
}

TEST(CollectiveReplay, OfASparseAllGatherForwardsEveryPieceWhole) {
  const std::vector<Elements> lengths{3, 0, 5, 2};
  std::vector<schedule::Plan> plans;
  std::vector<schedule::Interval> pieces;
  for (int r = 0; r < 4; ++r) {
    plans.push_back(schedule::sparse_all_gather({r, lengths}));
    pieces.push_back(schedule::sparse_piece(lengths, r));
  }
  const schedule::Promise promise = schedule::gather_promise(lengths);
  const Replay replay = replay_collective({plans, promise, pieces, Bytes(4), replays::network()});
  EXPECT_EQ(replay.rounds(), 3);
  EXPECT_EQ(replay.sent(3), Bytes(3 * 10 * 4));
  for (const auto& held : replay.frames.back().held) {
    for (const std::size_t p : {0U, 2U, 3U}) EXPECT_EQ(held[p].ranks, Contributions{1} << p);
  }
}

}  // namespace
}  // namespace annulet::report
