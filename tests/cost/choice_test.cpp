#include "annulet/cost/choice.hpp"

#include <gtest/gtest.h>

#include <set>

#include "annulet/cost/closed_form.hpp"

namespace annulet::cost {
namespace {

using schedule::Algorithm;
using schedule::Collective;

const Link kLink{Seconds(20e-6), Seconds(1e-6), SecondsPerByte(1 / 1.25e9), SecondsPerByte(1 / 10e9), "test"};

Task task(Collective collective, std::int64_t bytes, int world) { return {collective, bytes / 4, Bytes(4), world}; }

Algorithm choice(Collective collective, std::int64_t bytes, int world) {
  return cheapest_execution(task(collective, bytes, world), kLink).execution.algorithm;
}

TEST(CheapestExecution, TakesFewStepsForSmallVectorsAndFewBytesForLargeOnes) {
  EXPECT_EQ(choice(Collective::all_reduce, 64 << 10, 4), Algorithm::direct);
  EXPECT_EQ(choice(Collective::all_reduce, 64, 16), Algorithm::recursive_doubling);
  EXPECT_EQ(choice(Collective::all_gather, 1 << 20, 61), Algorithm::bruck);
  EXPECT_EQ(choice(Collective::all_gather, 1 << 10, 64), Algorithm::recursive_doubling);  // one message each step
  EXPECT_EQ(choice(Collective::broadcast, 8, 16), Algorithm::binomial_tree);
  EXPECT_EQ(choice(Collective::broadcast, 64 << 20, 16), Algorithm::pipelined_chain);
  EXPECT_EQ(choice(Collective::reduce, 64 << 20, 16), Algorithm::pipelined_chain);
  EXPECT_EQ(choice(Collective::all_reduce, 64 << 20, 7), Algorithm::ring);
}

TEST(CheapestExecution, IsNoDearerThanAnyOtherAndTheSameAgain) {
  for (const Collective collective : schedule::collectives()) {
    for (const int world : {1, 2, 3, 8}) {
      for (const std::int64_t bytes : {0, 4, 4096, 1 << 20}) {
        const Task t = task(collective, bytes, world);
        const auto priced = priced_executions(t, kLink);
        EXPECT_EQ(priced.size(), schedule::algorithms_of(collective).size());  // 8 ranks are few enough for direct
        for (const PricedExecution& one : priced) {
          EXPECT_LE(priced.front().time, one.time * (1 + 1e-8));
          EXPECT_EQ(task_time(t, one.execution, kLink), one.time);
        }
        EXPECT_EQ(cheapest_execution(t, kLink).execution, priced.front().execution);
      }
    }
  }
}

TEST(CheapestExecution, CutsSegmentsWhereThatPays) {
  const auto long_link = Link{Seconds(1e-3), Seconds(0), SecondsPerByte(1 / 1.25e8), SecondsPerByte(1 / 10e9), "test"};
  const auto best = cheapest_execution(task(Collective::broadcast, 16 << 20, 4), long_link).execution;
  EXPECT_EQ(best.algorithm, Algorithm::pipelined_chain);
  EXPECT_EQ(best.segment, Bytes(64 << 10));
  EXPECT_EQ(best.slots, 4);  // 125 kB are under way
}

// The core that adds is the one that copies: two messages where one would do only cost more, unless the vectors of all
// ranks fall out of the cache that cores share.
TEST(CheapestExecution, CutsOnlyWhatNoCacheHoldsInSharedMemory) {
  const auto segments = [](std::int64_t bytes, int ranks, const Network& network = assumed_network({})) {
    std::set<std::int64_t> found;
    for (const PricedExecution& one : priced_executions(task(Collective::all_reduce, bytes, ranks), network)) {
      const Algorithm algorithm = one.execution.algorithm;
      if (algorithm == Algorithm::ring || algorithm == Algorithm::direct) found.insert(one.execution.segment.value());
    }
    return found;
  };
  EXPECT_EQ(segments(256 << 10, 2), (std::set<std::int64_t>{512 << 10}));
  EXPECT_EQ(segments(8 << 20, 2), (std::set<std::int64_t>{4 << 20}));
  EXPECT_EQ(segments(8 << 20, 4), (std::set<std::int64_t>{512 << 10}));
  EXPECT_EQ(segments(64 << 20, 2), (std::set<std::int64_t>{512 << 10}));
  EXPECT_EQ(segments(1 << 20, 9), (std::set<std::int64_t>{4 << 20}));
  EXPECT_LE(*segments(64 << 20, 9).rbegin(), 512 << 10);

  // A port of its own, or cards between nodes, where neither latency nor adding is to be hidden: nothing is cut.
  const Link port{Seconds(0), Seconds(3e-6), SecondsPerByte(1 / 10e9), SecondsPerByte(0), "port"};
  Link copied = assumed_network({}).inside;
  copied.gamma = SecondsPerByte(0);
  EXPECT_EQ(segments(64 << 20, 2, port), (std::set<std::int64_t>{4 << 20}));
  EXPECT_EQ(segments(64 << 20, 2, Network(copied, port, {0, 1})), (std::set<std::int64_t>{4 << 20}));
}

TEST(CheapestExecution, ReducesLongVectorsInSharedMemoryDirectlyButGathersThemByAny) {
  const auto known = [](Collective collective, std::int64_t bytes) {
    return priced_executions(task(collective, bytes, 4), assumed_network({})).size();
  };
  for (const Collective collective : {Collective::all_reduce, Collective::reduce_scatter}) {
    EXPECT_EQ(known(collective, 512 << 10), schedule::algorithms_of(collective).size());
    EXPECT_EQ(known(collective, 1 << 20), 1U);
  }
  for (const Collective collective : {Collective::all_gather, Collective::broadcast, Collective::reduce}) {
    EXPECT_EQ(known(collective, 1 << 20), schedule::algorithms_of(collective).size());
  }
}

TEST(CheapestExecution, ReducesInSharedMemoryByFewMessagesAndLongVectorsByTheFewestReads) {
  const Network shared = assumed_network({});
  const auto choice = [&](std::int64_t bytes, int ranks) {
    return cheapest_execution(task(Collective::all_reduce, bytes, ranks), shared).execution.algorithm;
  };
  EXPECT_EQ(choice(2048, 2), Algorithm::recursive_doubling);
  EXPECT_EQ(choice(16 << 10, 2), Algorithm::recursive_doubling);
  EXPECT_EQ(choice(64 << 10, 2), Algorithm::ring);
  EXPECT_EQ(choice(64 << 10, 4), Algorithm::recursive_halving_doubling);
  for (const int ranks : {2, 3, 4, 8}) EXPECT_EQ(choice(4 << 20, ranks), Algorithm::direct) << ranks;
  EXPECT_EQ(choice(4 << 20, 9), Algorithm::ring);
}

TEST(CheapestExecution, DoesWhatItIsToldWhereItIsTold) {
  const auto ranges =
      schedule::parse_execution_ranges(Collective::all_reduce, "binomial_tree:0-1MiB;ring@128KiB:2MiB-max");
  const auto told = [&](std::int64_t bytes) {
    return cheapest_execution(task(Collective::all_reduce, bytes, 4), kLink, ranges).execution;
  };
  EXPECT_EQ(told(1 << 20).algorithm, Algorithm::binomial_tree);
  EXPECT_EQ(told(4 << 20).segment, Bytes(128 << 10));
  const auto free = cheapest_execution(task(Collective::all_reduce, 3 << 19, 4), kLink).execution;
  EXPECT_EQ(told(3 << 19), free);
}

TEST(TaskTime, IsTheClosedFormWhereSimulatingIsTooMuch) {
  const Task t = task(Collective::all_reduce, 4 << 20, 8);
  const schedule::Execution ring{Algorithm::ring, Bytes(4 << 20), 2};
  EXPECT_NEAR(task_time(t, ring, kLink, 1).count(), ring_all_reduce_time(t.bytes(), 8, kLink).count(), 1e-12);
}

TEST(BucketExecutions, AreTheCheapestOfEverySize) {
  const std::vector<Elements> tensors{8, 8, 8, 1 << 20, 3000, 3000};
  const schedule::SyncOptions sync{Bytes(64), Bytes(64), Bytes(1 << 20), 2};
  const auto preferred = schedule::parse_execution_ranges(Collective::all_reduce, "binomial_tree:12000-12000");
  const auto ranges = bucket_executions(tensors, Bytes(4), 4, sync, kLink, preferred);
  for (const Elements size : {8, 16, 3000, 1 << 20}) {
    const auto* range = schedule::range_of(ranges, Bytes(4 * size));
    if (size == 8 && range == nullptr) continue;  // buckets hold two of them
    ASSERT_NE(range, nullptr) << size;
    EXPECT_EQ(range->algorithm,
              cheapest_execution(task(Collective::all_reduce, 4 * size, 4), kLink, preferred).execution.algorithm);
  }
  EXPECT_EQ(schedule::range_of(ranges, Bytes(12'000))->algorithm, Algorithm::binomial_tree);
  EXPECT_TRUE(bucket_executions({}, Bytes(4), 4, sync, kLink).empty());
}

TEST(AssumedNetwork, IsFasterInsideANode) {
  const Network network = assumed_network({0, 0, 1});
  EXPECT_EQ(network.nodes(), 2);
  EXPECT_LT(network.inside.beta, network.between.beta);
  EXPECT_LT(network.inside.alpha, network.between.alpha);
}

}  // namespace
}  // namespace annulet::cost
