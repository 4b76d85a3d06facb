#include "annulet/cost/simulate.hpp"

#include <gtest/gtest.h>

#include "annulet/cost/closed_form.hpp"
#include "annulet/schedule/probes.hpp"
#include "annulet/schedule/recursive_doubling.hpp"
#include "annulet/schedule/ring.hpp"
#include "schedule/plans.hpp"

namespace annulet::cost {
namespace {

using schedule::Plan;

const Link kLink{Seconds(1e-3), Seconds(0), SecondsPerByte(1e-6), SecondsPerByte(0), "test"};

struct World {
  std::vector<Plan> plans;
  LaunchedCollective at(std::vector<Seconds> launched) const {
    LaunchedCollective collective{{}, Bytes(4), std::move(launched)};
    for (const Plan& plan : plans) collective.plans.push_back(&plan);
    return collective;
  }
  LaunchedCollective at_once() const { return at(std::vector<Seconds>(plans.size())); }
};

World ring(int world, Elements elements, Elements segment) {
  return {schedule::plans_of(world, [&](int r) {
    return schedule::ring_all_reduce({r, world, elements, segment, 4});
  })};
}

double doubling_time(int p) {
  return predicted_time({schedule::Collective::all_reduce, schedule::Algorithm::recursive_doubling, Bytes(40), p},
                        kLink)
      .total()
      .count();
}

double last(const std::vector<Seconds>& ends) { return std::max_element(ends.begin(), ends.end())->count(); }

TEST(Simulation, EqualsTheClosedFormOfTheRingWithoutSegments) {
  for (int p = 1; p <= 17; ++p) {
    const Elements elements = 60 * p;
    const World world = ring(p, elements, elements);
    const LaunchedCollective collective = world.at_once();
    const auto ends = simulate(std::span(&collective, 1), kLink);
    const double expected = ring_all_reduce_time(Bytes(4 * elements), p, kLink).count();
    for (const Seconds end : ends[0]) EXPECT_NEAR(end.count(), expected, 1e-12) << p;
  }
}

TEST(Simulation, EqualsTheClosedFormOfRecursiveDoubling) {
  for (const int p : {1, 2, 4, 7, 8, 13, 14, 15, 16}) {
    const World world{schedule::plans_of(p, [&](int r) { return schedule::recursive_doubling_all_reduce(r, p, 10); })};
    const LaunchedCollective collective = world.at_once();
    EXPECT_NEAR(last(simulate(std::span(&collective, 1), kLink)[0]), doubling_time(p), 1e-12) << p;
  }
}

// With at most half of the positions folded, no partner of the last round is late.
TEST(Simulation, RecursiveDoublingTakesUpToAStepLessWhereFewRanksFold) {
  for (const int p : {3, 5, 6, 9, 10, 11, 12, 17}) {
    const World world{schedule::plans_of(p, [&](int r) { return schedule::recursive_doubling_all_reduce(r, p, 10); })};
    const LaunchedCollective collective = world.at_once();
    const double bound = doubling_time(p);
    const double end = last(simulate(std::span(&collective, 1), kLink)[0]);
    EXPECT_LT(end, bound) << p;
    EXPECT_GE(end, bound - (kLink.alpha + kLink.beta * Bytes(40)).count()) << p;
  }
}

// p = 2, one chunk of 100 elements in two segments of 200 bytes: the second half follows the first at once, so the end
// is the last arrival: ports send 2 x 200 + 2 x 200 bytes back to back where the latency allows.
TEST(Simulation, PipelinesSegments) {
  const Link link{Seconds(0), Seconds(0), SecondsPerByte(1e-6), SecondsPerByte(2e-6), "test"};
  const World whole = ring(2, 200, 100), cut = ring(2, 200, 50);
  const LaunchedCollective one = whole.at_once(), two = cut.at_once();
  // whole: send 400 us, add 800 us, send 400 us
  EXPECT_NEAR(last(simulate(std::span(&one, 1), link)[0]), 1600e-6, 1e-12);
  // cut: 200 | add 400 | add 400 (first half leaves meanwhile) | send 200
  EXPECT_NEAR(last(simulate(std::span(&two, 1), link)[0]), 1200e-6, 1e-12);
}

TEST(Simulation, ALateRankDelaysEveryoneByWhatItIsLate) {
  const World world = ring(4, 400, 400);
  const LaunchedCollective punctual = world.at_once();
  const LaunchedCollective late = world.at({Seconds(0), Seconds(0), Seconds(0.5), Seconds(0)});
  const double base = last(simulate(std::span(&punctual, 1), kLink)[0]);
  EXPECT_NEAR(last(simulate(std::span(&late, 1), kLink)[0]), base + 0.5, 1e-12);
}

TEST(Simulation, TwoBucketsShareThePort) {
  const World world = ring(2, 1000, 1000);
  const std::vector<LaunchedCollective> both{world.at_once(), world.at_once()};
  const auto ends = simulate(both, kLink);
  const double alone = ring_all_reduce_time(Bytes(4000), 2, kLink).count();
  EXPECT_GE(last(ends[0]), alone - 1e-12);
  // Four messages of 2 ms each from every port, the last two behind a latency of 1 ms.
  EXPECT_NEAR(last(ends[1]), 4 * 2e-3 + 1e-3, 1e-12);
}

TEST(Simulation, ALaterBucketQueuesWhenOnlyOneMayBeActive) {
  const World world = ring(2, 1000, 1000);
  const std::vector<LaunchedCollective> both{world.at_once(), world.at_once()};
  const double alone = ring_all_reduce_time(Bytes(4000), 2, kLink).count();
  EXPECT_NEAR(last(simulate(both, kLink, {.active = 1})[1]), 2 * alone, 1e-12);
}

TEST(Simulation, CountsTheGapOnceAMessage) {
  Link link = kLink;
  link.gap = Seconds(1e-2);
  const World world = ring(3, 300, 300);
  const LaunchedCollective collective = world.at_once();
  EXPECT_NEAR(last(simulate(std::span(&collective, 1), link)[0]),
              ring_all_reduce_time(Bytes(1200), 3, kLink).count() + 4 * 1e-2, 1e-12);
}

TEST(Simulation, SmallMessagesTravelOnTheEagerPiece) {
  Link link = kLink;
  link.eager = {Bytes(400), Seconds(1e-4), Seconds(1e-5), SecondsPerByte(1e-7)};
  const Link eager{Seconds(1e-4), Seconds(1e-5), SecondsPerByte(1e-7), SecondsPerByte(0), "eager alone"};
  const World small = ring(4, 400, 400), large = ring(4, 404, 404);
  const LaunchedCollective of_400 = small.at_once(), of_404 = large.at_once();  // bytes of a chunk
  EXPECT_NEAR(last(simulate(std::span(&of_400, 1), link)[0]), last(simulate(std::span(&of_400, 1), eager)[0]), 1e-15);
  EXPECT_NEAR(last(simulate(std::span(&of_404, 1), link)[0]), last(simulate(std::span(&of_404, 1), kLink)[0]), 1e-15);
}

// A large message, then a small one that overtakes it: each still meets its own receive.
// 1000 bytes take 1 ms of the wire, of which a burst of 600 bytes saves 0.6 ms, once: what follows at once pays in
// full.
TEST(Simulation, ABurstPassesAtOnceAndIsOwedAfterwards) {
  Link link = kLink;
  link.burst = Bytes(600);
  const auto time = [&](int messages) {
    const World world{schedule::plans_of(2, [&](int r) { return schedule::stream({r, 2, 0, 1, 250, messages}); })};
    const LaunchedCollective collective = world.at_once();
    return simulate(std::span(&collective, 1), link)[0][1].count();
  };
  EXPECT_NEAR(time(1), 0.4e-3 + 1e-3, 1e-12);
  link.burst_pace = SecondsPerByte(5e-7);
  EXPECT_NEAR(time(1), 0.5e-3 + 1e-3 + 2e-6, 1e-12);  // 4 bytes of acknowledgement included
  link.burst_pace = {};
  EXPECT_NEAR(time(3), 2.4e-3 + 1e-3, 1e-12);
  link.burst = Bytes(5000);
  link.gap = Seconds(1e-5);
  EXPECT_NEAR(time(3), 4e-5 + 1e-3, 1e-12);  // g is not saved, nor that of the acknowledgement
}

TEST(Simulation, ASmallMessageMayArriveFirst) {
  const Link link{Seconds(1e-3),     Seconds(0), SecondsPerByte(0),
                  SecondsPerByte(0), "",         EagerLink{Bytes(40), {}, {}, {}}};
  World world;
  for (int r = 0; r < 2; ++r) {
    schedule::PlanBuilder builder(r, 2, 110);
    for (const schedule::Interval part : {schedule::Interval{0, 100}, schedule::Interval{100, 10}}) {
      const schedule::Region region{schedule::Place::data, part};
      r == 0 ? builder.send(1, region, {}) : builder.receive(0, region, {});
    }
    world.plans.push_back(std::move(builder).finish());
  }
  const LaunchedCollective collective = world.at_once();
  EXPECT_NEAR(simulate(std::span(&collective, 1), link)[0][1].count(), 1e-3, 1e-15);
}

// Ranks 0 and 1 each send 100 elements to their partners on the other node, ranks 2 and 3.
TEST(Simulation, RanksOfANodeShareItsCard) {
  World world;
  for (int r = 0; r < 4; ++r) {
    schedule::PlanBuilder builder(r, 4, 100);
    const schedule::Region all{schedule::Place::data, {0, 100}};
    r < 2 ? builder.send(r + 2, all, {}) : builder.receive(r - 2, all, {});
    world.plans.push_back(std::move(builder).finish());
  }
  const LaunchedCollective collective = world.at_once();
  const auto ends = [&](std::vector<int> node) {
    return simulate(std::span(&collective, 1), {{}, kLink, std::move(node)})[0];
  };
  const auto shared = ends({0, 0, 1, 1}), apart = ends({0, 1, 2, 3});
  EXPECT_NEAR(shared[2].count(), 1.4e-3, 1e-12);
  EXPECT_NEAR(shared[3].count(), 1.8e-3, 1e-12);
  EXPECT_NEAR(apart[3].count(), 1.4e-3, 1e-12);
}

// Rank 0 sends the whole vector to each other rank.
World sent_to_all(int ranks, Elements elements) {
  World world;
  const schedule::Region all{schedule::Place::data, {0, elements}};
  for (int r = 0; r < ranks; ++r) {
    schedule::PlanBuilder builder(r, ranks, elements);
    for (int peer = 1; r == 0 && peer < ranks; ++peer) builder.send(peer, all, {});
    if (r > 0) builder.receive(0, all, {});
    world.plans.push_back(std::move(builder).finish());
  }
  return world;
}

// 100,000 elements to each of two peers on nodes of their own: 0.4 s of the card each, shared by sixteenths, so that
// the first is there only when one piece less than all has left.
TEST(Simulation, ACardServesItsConnectionsInTurn) {
  const World world = sent_to_all(3, 100'000);
  const LaunchedCollective collective = world.at_once();
  const auto ends = simulate(std::span(&collective, 1), {{}, kLink, {0, 1, 2}})[0];
  EXPECT_NEAR(ends[1].count(), 0.8 - 0.4 / 16 + 1e-3, 1e-9);
  EXPECT_NEAR(ends[2].count(), 0.8 + 1e-3, 1e-9);
}

// 10,000 elements to each of two peers: pieces of 16 KiB, of which the last of each message is shorter.
TEST(Simulation, ACardTakesTurnsBySixteenKibibytes) {
  const World world = sent_to_all(3, 10'000);
  const LaunchedCollective collective = world.at_once();
  const auto ends = simulate(std::span(&collective, 1), {{}, kLink, {0, 1, 2}})[0];
  EXPECT_NEAR(ends[1].count(), 0.08 - (40'000 - 2 * 16'384) * 1e-6 + 1e-3, 1e-9);
  EXPECT_NEAR(ends[2].count(), 0.08 + 1e-3, 1e-9);
}

// A burst lets 400,000 bytes pass at once; then their ends are busy with them, for no longer than it takes a core to
// keep up with the full rate in both directions (1 us a byte).
TEST(Simulation, ACoreHandlesWhatPassesBetweenNodes) {
  const World world = sent_to_all(2, 100'000);
  const LaunchedCollective collective = world.at_once();
  for (const auto& [moving, ends] : {std::pair(0.0, 1e-3), {3e-7, 0.12}, {5e-7, 0.2}, {9e-7, 0.2}}) {
    Link link = kLink;
    link.burst = Bytes(1'000'000), link.moving = SecondsPerByte(moving);
    EXPECT_NEAR(simulate(std::span(&collective, 1), {{}, link, {0, 1}})[0][1].count(), ends, 1e-9) << moving;
    EXPECT_NEAR(simulate(std::span(&collective, 1), {link, {}, {}})[0][1].count(), 1e-3, 1e-9) << moving;
  }
}

// In rank order a ring crosses each card once, and what stays inside a node costs nothing here.
TEST(Simulation, ARingCrossesEachCardOnce) {
  const World world = ring(4, 400, 400);
  const LaunchedCollective collective = world.at_once();
  const double two_nodes = last(simulate(std::span(&collective, 1), {{}, kLink, {0, 0, 1, 1}})[0]);
  const double scattered = last(simulate(std::span(&collective, 1), {{}, kLink, {0, 1, 0, 1}})[0]);
  EXPECT_LT(two_nodes, ring_all_reduce_time(Bytes(1600), 4, kLink).count());
  EXPECT_GT(scattered, ring_all_reduce_time(Bytes(1600), 4, kLink).count());
}

TEST(Simulation, EmptyPlansEndWhenTheyAreLaunched) {
  const World world = ring(1, 100, 10);
  const LaunchedCollective collective = world.at({Seconds(0.25)});
  EXPECT_EQ(simulate(std::span(&collective, 1), kLink)[0][0], Seconds(0.25));
}

// p = 2, halves of 200 bytes: sent at once, 200 us on the wire, 1 ms on its way. Looked at all the time the all-reduce
// ends after 2.4 ms. Rank 0 looks at whole milliseconds, rank 1 0.618 ms later; what rank 0 sent is due at 1.2, leaves
// at 2 and is seen at 2.618 ms, and so on. Once nobody computes, ranks look all the time again.
TEST(Simulation, NothingMovesUntilARankThatComputesLooks) {
  const World world = ring(2, 100, 100);
  const LaunchedCollective collective = world.at_once();
  const Attention always{}, seldom{Seconds(1e-3), {{Seconds(0), Seconds(1)}}},
      briefly{Seconds(1e-3), {{Seconds(0), Seconds(1.3e-3)}}},
      never{Attention::kNever, {{Seconds(1e-4), Seconds(5e-3)}}};
  const auto end = [&](const Attention& attention) {
    return simulate(std::span(&collective, 1), kLink, {.attention = attention})[0];
  };
  EXPECT_NEAR(last(end(always)), 2.4e-3, 1e-12);
  // Rank 1's half: due 1.2, left 1.618, seen by rank 0 at 2; back: due 3.2, left 4, seen by rank 1 at 4.618.
  EXPECT_NEAR(end(seldom)[1].count(), 4.618e-3, 1e-9);
  EXPECT_NEAR(last(end(briefly)), 1.3e-3 + 1.2e-3, 1e-9);
  EXPECT_NEAR(last(end(never)), 5e-3 + 1.2e-3, 1e-9);  // the first half goes when the waiting begins
}

// Halves of 200 bytes, each handled for 0.1 ms before it is sent and after it has come, twice.
TEST(Simulation, MessagesAreHandledBeforeAndAfter) {
  const World world = ring(2, 100, 100);
  LaunchedCollective collective = world.at_once();
  collective.handling = SecondsPerByte(0.5e-6);
  EXPECT_NEAR(last(simulate(std::span(&collective, 1), kLink)[0]), 2.4e-3 + 4 * 0.1e-3, 1e-12);
}

}  // namespace
}  // namespace annulet::cost
