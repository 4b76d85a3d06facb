// Gradients that travel as bfloat16: half the bytes, the same bits on every rank and at every stage of ZeRO.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>

#include "annulet/base/random.hpp"
#include "annulet/parallel/gradient_sync.hpp"
#include "collectives/in_process_ranks.hpp"

namespace annulet::parallel {
namespace {

using collectives::Driver;
using collectives::Engine;

const std::vector<Elements> kNarrowSizes{10, 0, 300, 1000, 3, 17};
constexpr std::size_t kNarrowAll = 1330;

nn::Layout narrow_layout() {
  std::vector<nn::Tensor> tensors;
  for (std::size_t i = 0; i < kNarrowSizes.size(); ++i)
    tensors.push_back({"t" + std::to_string(i), {kNarrowSizes[i]}, {}});
  return nn::Layout(std::move(tensors));
}

struct NarrowSetting {
  int world;
  int stage = 0;
  Driver driver = Driver::polling;
  schedule::Algorithm algorithm = schedule::Algorithm::ring;
};

SyncOptions narrow_options(const NarrowSetting& setting) {
  SyncOptions options{Bytes(2000), Bytes(100), Bytes(64), 2};
  options.compression.kind = schedule::Compression::Kind::bfloat16;
  if (setting.algorithm != schedule::Algorithm::ring) {
    options.executions = {{setting.algorithm, std::nullopt, Bytes(0), schedule::kNoLimit}};
  }
  return options;
}

float narrow_gradient(int rank, std::size_t i) {
  return static_cast<float>(RandomStream(7, "gradient " + std::to_string(rank)).normal(i));
}

// Each rank's chunk of every bucket, from that rank.
std::vector<float> narrow_sums(const NarrowSetting& setting) {
  const nn::Layout tensors = narrow_layout();
  std::vector<float> all(kNarrowAll);
  std::mutex mutex;
  collectives::run_ranks(setting.world, [&](int rank, std::unique_ptr<comm::Transport> transport) {
    Engine engine(std::move(transport), {.driver = setting.driver, .deadline = Seconds(60)});
    std::vector<float> gradients(kNarrowAll);
    GradientSync<float> sync(engine, tensors, gradients, narrow_options(setting),
                             schedule::gradient_collective(setting.stage));
    for (int step = 0; step < 2; ++step) {
      for (std::size_t i = 0; i < kNarrowAll; ++i) gradients[i] = narrow_gradient(rank, i);
      sync.begin_step();
      for (std::size_t t = 0; t < kNarrowSizes.size(); ++t) sync.gradient_ready(t), sync.pulse();
      sync.finish();
    }
    EXPECT_EQ(engine.traffic()[comm::Purpose::gradients], sync.planned_bytes() * 2);
    const std::lock_guard lock(mutex);
    for (const schedule::Interval own : sync.shard()) {
      std::copy_n(gradients.begin() + own.first, own.count, all.begin() + own.first);
    }
  });
  return all;
}

bool is_bfloat16(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return (bits & 0xffffU) == 0;
}

TEST(NarrowGradients, AreTheSumsUpToTheRoundingOfEachPartialSum) {
  for (const int world : {1, 2, 3, 4, 7}) {
    const std::vector<float> narrow = narrow_sums({world});
    for (std::size_t i = 0; i < kNarrowAll; ++i) {
      double exact = 0, magnitude = 0;
      for (int rank = 0; rank < world; ++rank) {
        exact += narrow_gradient(rank, i), magnitude += std::abs(narrow_gradient(rank, i));
      }
      ASSERT_TRUE(std::abs(narrow[i] - exact) <= magnitude * world / 256) << world << " ranks, element " << i;
      ASSERT_TRUE(is_bfloat16(narrow[i])) << world << " ranks, element " << i;
    }
  }
}

TEST(NarrowGradients, HaveTheSameBitsAtEveryStageWithEveryDriver) {
  for (const int world : {1, 2, 3, 7}) {
    const std::vector<float> expected = narrow_sums({world});
    for (const Driver driver : {Driver::blocking, Driver::thread}) EXPECT_EQ(narrow_sums({world, 0, driver}), expected);
    EXPECT_EQ(narrow_sums({world, 1}), expected);
  }
}

TEST(NarrowGradients, AreEqualOnAllRanksByEveryAlgorithm) {
  for (const schedule::Algorithm algorithm : schedule::algorithms_of(schedule::Collective::all_reduce)) {
    for (const int world : {2, 3, 4, 5}) {
      std::vector<std::vector<float>> results(static_cast<std::size_t>(world));
      const nn::Layout tensors = narrow_layout();
      collectives::run_ranks(world, [&](int rank, std::unique_ptr<comm::Transport> transport) {
        Engine engine(std::move(transport), {});
        std::vector<float>& gradients = results[static_cast<std::size_t>(rank)];
        for (std::size_t i = 0; i < kNarrowAll; ++i) gradients.push_back(narrow_gradient(rank, i));
        GradientSync<float> sync(engine, tensors, gradients, narrow_options({world, 0, Driver::polling, algorithm}));
        sync.begin_step();
        for (std::size_t t = 0; t < kNarrowSizes.size(); ++t) sync.gradient_ready(t);
        sync.finish();
      });
      for (const auto& result : results) EXPECT_EQ(result, results[0]) << to_text(algorithm) << ", " << world;
      EXPECT_TRUE(std::ranges::all_of(results[0], is_bfloat16)) << to_text(algorithm) << ", " << world;
    }
  }
}

TEST(NarrowGradients, TakeHalfTheBytes) {
  for (const int world : {2, 4}) {
    std::vector<Bytes> sent(static_cast<std::size_t>(world));
    const nn::Layout tensors = narrow_layout();
    collectives::run_ranks(world, [&](int rank, std::unique_ptr<comm::Transport> transport) {
      Engine engine(std::move(transport), {});
      std::vector<float> gradients(kNarrowAll);
      GradientSync<float> sync(engine, tensors, gradients, narrow_options({world}));
      EXPECT_EQ(sync.payload(), Bytes(2 * kNarrowAll));
      sync.begin_step();
      for (std::size_t t = 0; t < kNarrowSizes.size(); ++t) sync.gradient_ready(t);
      sync.finish();
      sent[static_cast<std::size_t>(rank)] = engine.traffic()[comm::Purpose::gradients];
    });
    Bytes all{0};
    for (const Bytes bytes : sent) all += bytes;
    EXPECT_EQ(all, Bytes(2 * (world - 1) * 2 * static_cast<Elements>(kNarrowAll)));
  }
}

}  // namespace
}  // namespace annulet::parallel
