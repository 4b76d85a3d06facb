#include "annulet/parallel/gradient_sync.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <thread>

#include "collectives/in_process_ranks.hpp"

namespace annulet::parallel {
namespace {

using collectives::Driver;
using collectives::Engine;

nn::Layout layout_of(const std::vector<Elements>& sizes) {
  std::vector<nn::Tensor> tensors;
  for (std::size_t i = 0; i < sizes.size(); ++i) tensors.push_back({"t" + std::to_string(i), {sizes[i]}, {}});
  return nn::Layout(std::move(tensors));
}

const SyncOptions kSmall{Bytes(400), Bytes(100), Bytes(64), 2};

// Reports all tensors in order, as backward does.
void report_all(GradientSync<float>& sync, const nn::Layout& layout) {
  sync.begin_step();
  for (std::size_t t = 0; t < layout.tensors().size(); ++t) {
    sync.gradient_ready(t);
    sync.pulse();
  }
  sync.finish();
}

TEST(GradientSync, SumsEveryGradientOverRanksWhateverTheBuckets) {
  const nn::Layout layout = layout_of({10, 0, 30, 100, 3, 0});
  for (const Driver driver : {Driver::blocking, Driver::polling, Driver::thread}) {
    for (const int world : {1, 2, 3, 7}) {
      collectives::run_ranks(world, [&](int rank, std::unique_ptr<comm::Transport> transport) {
        Engine engine(std::move(transport), {.driver = driver});
        std::vector<float> gradients(143);
        GradientSync<float> sync(engine, layout, gradients, kSmall);
        EXPECT_EQ(sync.buckets().size(), 4U);
        for (int step = 0; step < 3; ++step) {
          std::iota(gradients.begin(), gradients.end(), static_cast<float>(rank + step));
          report_all(sync, layout);
          for (std::size_t i = 0; i < gradients.size(); ++i) {
            const auto p = static_cast<float>(world);
            ASSERT_EQ(gradients[i], p * static_cast<float>(i + static_cast<std::size_t>(step)) + p * (p - 1) / 2);
          }
          EXPECT_TRUE(sync.finite());
        }
        EXPECT_EQ(engine.traffic()[comm::Purpose::gradients], sync.planned_bytes() * 3);
      });
    }
  }
}

TEST(GradientInstants, SumsWhatWasComputedBetweenPulses) {
  GradientInstants instants;
  for (const double at : {1e-3, 2e-3, 4e-3}) instants.pulse(Seconds(at));
  EXPECT_DOUBLE_EQ(instants.between.count(), 3e-3);
  EXPECT_DOUBLE_EQ(instants.squares_between, 5e-6);
}

TEST(GradientSync, RecordsBetweenPulsesWhatTheThreadComputed) {
  const nn::Layout layout = layout_of({10});
  collectives::run_ranks(1, [&](int, std::unique_ptr<comm::Transport> transport) {
    Engine engine(std::move(transport), {});
    std::vector<float> gradients(10);
    GradientSync<float> sync(engine, layout, gradients, kSmall);
    GradientInstants instants{std::vector<Instant>(1), Seconds(0), Seconds(0), 0, {}};
    sync.record(instants);
    sync.begin_step();
    sync.gradient_ready(0);
    sync.pulse();
    std::this_thread::sleep_for(Seconds(0.03));
    sync.pulse();
    sync.finish();
    EXPECT_GT(instants.between, Seconds(0));
    EXPECT_LT(instants.between, Seconds(0.02));
  });
}

TEST(GradientSync, RunsEveryBucketByTheAlgorithmOfItsSize) {
  const nn::Layout layout = layout_of({10, 0, 30, 100, 3, 0});
  for (const schedule::Algorithm algorithm : schedule::algorithms_of(schedule::Collective::all_reduce)) {
    collectives::run_ranks(5, [&](int rank, std::unique_ptr<comm::Transport> transport) {
      Engine engine(std::move(transport), {});
      std::vector<float> gradients(143, static_cast<float>(rank));
      SyncOptions options = kSmall;
      options.executions = {{algorithm, Bytes(32), Bytes(0), Bytes(200)}};  // of the largest: the ring
      GradientSync<float> sync(engine, layout, gradients, options);
      report_all(sync, layout);
      EXPECT_EQ(gradients, std::vector<float>(143, 10.0F));
      Bytes planned{0};
      for (const schedule::Bucket& bucket : sync.buckets()) {
        const Elements n = bucket.elements.count;
        planned += Bytes(4) * planned_sends(schedule::Collective::all_reduce,
                                            n > 50 ? schedule::Algorithm::ring : algorithm, {rank, 5, n});
        EXPECT_EQ(bucket_sends(rank, 5, n, Bytes(4), options),
                  sent_elements(sync.plan(static_cast<std::size_t>(&bucket - sync.buckets().data()))));
      }
      EXPECT_EQ(engine.traffic()[comm::Purpose::gradients], planned);
    });
  }
}

TEST(GradientSync, LaunchesABucketWhenItsLastTensorIsFinalNotBefore) {
  const nn::Layout layout = layout_of({10, 10, 30});
  collectives::run_ranks(1, [&](int, std::unique_ptr<comm::Transport> transport) {
    Engine engine(std::move(transport), {.driver = Driver::polling});
    std::vector<float> gradients(50);
    GradientSync<float> sync(engine, layout, gradients, kSmall);
    sync.begin_step();
    sync.gradient_ready(0);
    EXPECT_EQ(sync.times(0).started, Instant{});
    sync.gradient_ready(1);
    EXPECT_NE(sync.times(0).started, Instant{});
    EXPECT_EQ(sync.times(1).started, Instant{});
    sync.gradient_ready(2);
    sync.finish();
    EXPECT_NE(sync.times(1).finished, Instant{});
  });
}

TEST(GradientSync, OwnedPartsOfTheNormAddUpToTheWhole) {
  const nn::Layout layout = layout_of({1, 50, 7, 90});
  for (const int world : {1, 2, 3, 5}) {
    std::vector<double> parts(static_cast<std::size_t>(world));
    collectives::run_ranks(world, [&](int rank, std::unique_ptr<comm::Transport> transport) {
      Engine engine(std::move(transport), {});
      std::vector<float> gradients(148, 3.0F / static_cast<float>(world));
      GradientSync<float> sync(engine, layout, gradients, kSmall);
      report_all(sync, layout);
      parts[static_cast<std::size_t>(rank)] = sync.owned_squared_norm();
    });
    EXPECT_NEAR(std::accumulate(parts.begin(), parts.end(), 0.0), 9.0 * 148, 1e-3) << world;
  }
}

TEST(GradientSync, RemembersThatThisRanksGradientsWereNotFinite) {
  const nn::Layout layout = layout_of({10, 200});
  collectives::run_ranks(2, [&](int rank, std::unique_ptr<comm::Transport> transport) {
    Engine engine(std::move(transport), {});
    std::vector<float> gradients(210, 1.0F);
    if (rank == 1) gradients[77] = std::numeric_limits<float>::quiet_NaN();
    GradientSync<float> sync(engine, layout, gradients, kSmall);
    report_all(sync, layout);
    EXPECT_EQ(sync.finite(), rank == 0);
    EXPECT_TRUE(std::isnan(gradients[77]));  // by now on both
    gradients.assign(210, 1.0F);
    report_all(sync, layout);
    EXPECT_TRUE(sync.finite());
  });
}

TEST(AllFinite, SeesNaNAndInfinityInTheReleaseBuild) {
  std::vector<float> values(1000, 1e38F);
  EXPECT_TRUE(all_finite<float>(values));
  for (const float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()}) {
    for (const std::size_t at : {std::size_t{0}, std::size_t{333}, std::size_t{999}}) {
      auto spoilt = values;
      spoilt[at] = bad;
      EXPECT_FALSE(all_finite<float>(spoilt));
    }
  }
  EXPECT_FALSE(all_finite<double>(std::vector<double>{0, std::numeric_limits<double>::quiet_NaN()}));
  EXPECT_TRUE(all_finite<float>({}));
}

}  // namespace
}  // namespace annulet::parallel
