#include "annulet/data/sampler.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>

#include "annulet/base/error.hpp"

namespace annulet::data {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

void append(std::vector<Elements>& to, std::span<const Elements> from) {
  to.insert(to.end(), from.begin(), from.end());
}

// All samples of the current epoch, step by step and rank by rank.
std::vector<Elements> epoch_of(const Sampler& sampler, Elements world) {
  std::vector<Elements> drawn;
  for (Elements step = 0; step < sampler.steps_per_epoch(); ++step) {
    for (Elements rank = 0; rank < world; ++rank) append(drawn, sampler.slice(step, rank, world).indices);
  }
  return drawn;
}

std::vector<Elements> counting(Elements count) {
  std::vector<Elements> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), Elements{0});
  return numbers;
}

TEST(Sampler, EveryRankDrawsItsShareAndTogetherEachSampleOnce) {
  for (const Elements samples : {1, 2, 3, 4, 5, 7, 16}) {
    Sampler sampler({.samples = samples, .batch = 2});
    EXPECT_EQ(sampler.steps_per_epoch(), (samples + 1) / 2);
    for (const Elements epoch : {0, 1, 2}) {
      sampler.begin_epoch(epoch);
      std::vector<Elements> drawn = epoch_of(sampler, 4);
      std::sort(drawn.begin(), drawn.end());
      EXPECT_THAT(drawn, ElementsAreArray(counting(samples))) << samples << " samples, epoch " << epoch;
    }
  }
}

TEST(Sampler, NumbersRandomDrawsOnAndOnInWholeSteps) {
  Sampler sampler({.samples = 10, .batch = 4, .order = Order::draws});
  EXPECT_EQ(sampler.steps_per_epoch(), 2);
  EXPECT_THAT(epoch_of(sampler, 3), ElementsAreArray(counting(8)));
  sampler.begin_epoch(2);
  EXPECT_THAT(sampler.slice(1, 1, 2).indices, ElementsAre(22, 23));
  EXPECT_EQ(sampler.slice(1, 1, 2).first_draw, 22U);
  EXPECT_EQ(Sampler({.samples = 1, .batch = 4, .order = Order::draws}).slice(0, 0, 1).indices.size(), 4U);
}

TEST(Sampler, RefusesToDrawFromNothing) {
  EXPECT_THAT([] { Sampler({.samples = 0, .batch = 2}); }, ThrowsMessage<InputError>(HasSubstr("no samples")));
  EXPECT_THAT([] { Sampler({.samples = 2, .batch = 0}); }, ThrowsMessage<InputError>(HasSubstr("batch of 0")));
}

TEST(Sampler, OrderDependsOnSeedAndEpochAndNotOnTheWorld) {
  Sampler sampler({.samples = 100, .batch = 32, .seed = 7});
  const auto first = epoch_of(sampler, 1);
  EXPECT_EQ(epoch_of(sampler, 4), first);
  EXPECT_EQ(epoch_of(sampler, 33), first);
  sampler.begin_epoch(1);
  EXPECT_NE(epoch_of(sampler, 1), first);
  sampler.begin_epoch(0);
  EXPECT_EQ(epoch_of(sampler, 1), first);
  EXPECT_NE(epoch_of(Sampler({.samples = 100, .batch = 32, .seed = 8}), 1), first);
}

TEST(Sampler, CountsTheRaggedLastBatchExactly) {
  const Sampler sampler({.samples = 11, .batch = 4, .order = Order::sequential});
  EXPECT_EQ(sampler.steps_per_epoch(), 3);
  EXPECT_EQ(sampler.slice(1, 0, 3).global, 4);
  EXPECT_THAT(sampler.slice(1, 0, 3).indices, ElementsAre(4, 5));
  EXPECT_THAT(sampler.slice(1, 2, 3).indices, ElementsAre(7));
  EXPECT_EQ(sampler.slice(2, 3, 4).global, 3);
  EXPECT_TRUE(sampler.slice(2, 3, 4).indices.empty());
  EXPECT_THROW(sampler.slice(3, 0, 1), ContractError);
  EXPECT_THROW(sampler.slice(0, 4, 4), ContractError);
}

TEST(Sampler, NumbersAllDrawsOfTheRunOnce) {
  Sampler sampler({.samples = 11, .batch = 4});
  std::uint64_t next = 0;
  for (const Elements epoch : {0, 1}) {
    sampler.begin_epoch(epoch);
    for (Elements step = 0; step < 3; ++step) {
      for (Elements rank = 0; rank < 3; ++rank) {
        const Slice slice = sampler.slice(step, rank, 3);
        EXPECT_EQ(slice.first_draw, next);
        next += slice.indices.size();
      }
    }
  }
}

TEST(Sampler, MicroBatchesMakeUpTheSlice) {
  const Sampler sampler({.samples = 20, .batch = 20});
  const Slice slice = sampler.slice(0, 1, 2);
  std::vector<Elements> joined;
  for (Elements k = 0; k < 4; ++k) {
    const Slice part = slice.micro(k, 4);
    EXPECT_EQ(part.global, 20);
    EXPECT_EQ(part.first_draw, slice.first_draw + joined.size());
    EXPECT_EQ(part.indices.size(), k < 2 ? 3 : 2);
    append(joined, part.indices);
  }
  EXPECT_THAT(joined, ElementsAreArray(slice.indices));
}

TEST(Sampler, PutsEverySampleEverywhereEquallyOften) {
  constexpr Elements kSamples = 5, kEpochs = 5000;
  Sampler sampler({.samples = kSamples, .batch = kSamples});
  std::vector<std::vector<Elements>> seen(kSamples, std::vector<Elements>(kSamples));
  for (Elements epoch = 0; epoch < kEpochs; ++epoch) {
    sampler.begin_epoch(epoch);
    const auto order = sampler.slice(0, 0, 1).indices;
    for (std::size_t place = 0; place < order.size(); ++place) ++seen[place][static_cast<std::size_t>(order[place])];
  }
  for (const auto& counts : seen) {
    for (const Elements count : counts) EXPECT_NEAR(static_cast<double>(count), 1000, 140);  // five deviations of 28
  }
}

TEST(EvaluationSampler, GivesEachSampleOnceInChunksThatFit) {
  for (const Elements samples : {1, 7, 30, 31}) {
    const Sampler sampler = evaluation_sampler(samples, 3, 4);
    EXPECT_THAT(epoch_of(sampler, 4), ElementsAreArray(counting(samples)));
    for (Elements step = 0; step < sampler.steps_per_epoch(); ++step) {
      for (Elements rank = 0; rank < 4; ++rank) EXPECT_LE(sampler.slice(step, rank, 4).indices.size(), 3);
    }
  }
}

}  // namespace
}  // namespace annulet::data
