// What verify compares, to the last bit, and what it makes of what is no number.
#include "annulet/train/verify.hpp"

#include <gmock/gmock.h>

#include <cstdlib>
#include <limits>

#include "annulet/train/agree.hpp"

namespace annulet::train {
namespace {

Config small_config() {
  Config config;
  config.data = "synthetic", config.widths = {20, 30, 4}, config.samples = 64;
  config.batch = 20, config.steps = 6, config.reproducible = 8, config.deadline = Seconds(60);
  return config;
}

Verification on_threads(const Config& config, int ranks) {
  return verify_in_process(config, ranks, [](int rank, const std::string& why) {
    ADD_FAILURE() << "rank " << rank << ": " << why;
    std::abort();
  });
}

TEST(Verification, SeesAFlippedBitOfAnyRankAtEveryStage) {
  for (const int stage : {0, 1, 2, 3}) {
    Config config = small_config();
    config.zero = stage;
    EXPECT_TRUE(on_threads(config, 3).identical()) << "stage " << stage;
    for (const char* rank : {"0", "1", "2", "all"}) {
      config.inject = std::string("flip:rank=") + rank + ",step=3";
      EXPECT_FALSE(on_threads(config, 3).identical()) << "stage " << stage << ", rank " << rank;
    }
  }
}

TEST(Verification, RefusesWhatTrainingRefuses) {
  Config config = small_config();
  config.reproducible = 1;
  EXPECT_THAT([&] { on_threads(config, 3); },
              testing::ThrowsMessage<AgreedError>(testing::StartsWith("reproducible = 1 on 3 ranks ")));
  config = small_config(), config.inject = "nan:rank=2,step=2";
  EXPECT_THAT([&] { on_threads(config, 3); },
              testing::ThrowsMessage<AgreedError>(testing::StartsWith("rank 2, step 2: ")));
}

Verification of_losses(std::vector<double> losses, std::vector<double> alone) {
  Verification v;
  v.losses = std::move(losses), v.alone = std::move(alone);
  return v;
}

TEST(Verification, TakesTheTwoZerosForDifferent) {
  Verification zeros = of_losses({0.0}, {0.0});
  EXPECT_TRUE(zeros.identical());
  zeros.alone = {-0.0};
  EXPECT_FALSE(zeros.identical());
  EXPECT_EQ(zeros.loss_difference(), 0);
}

TEST(Verification, HasNoDifferenceWithinBoundsWhereALossIsNaNInAnyStep) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  for (std::size_t step = 0; step < 3; ++step) {
    Verification v = of_losses({1, 2, 3}, {1, 2.5, 3});
    EXPECT_EQ(v.loss_difference(), 0.2);
    v.losses[step] = kNaN;
    EXPECT_FALSE(v.loss_difference() <= 1e300) << step;
    v.alone[step] = kNaN;
    EXPECT_FALSE(v.loss_difference() <= 1e300) << step;
    v.losses[step] = 1;
    EXPECT_FALSE(v.loss_difference() <= 1e300) << step;
  }
}

}  // namespace
}  // namespace annulet::train
