#include <gtest/gtest.h>

#include "annulet/data/dataset.hpp"
#include "annulet/train/trainer.hpp"
#include "collectives/in_process_ranks.hpp"
#include "support/allocations.hpp"

namespace annulet::train {
namespace {

using collectives::Driver;
using collectives::Engine;

TEST(Trainer, AllocatesNothingAfterTheFirstStepAtAnyStage) {
  for (int stage = 0; stage <= 1; ++stage) {
    Config config;
    config.zero = stage;
    config.widths = {50, 300, 10};
    config.data = "synthetic";
    config.batch = 32, config.momentum = 0.9;
    const data::Dataset data = data::make_synthetic({320, 50, 10, 0, 1});
    for (const Driver driver : {Driver::blocking, Driver::polling, Driver::thread}) {
      collectives::run_ranks(1, [&](int, std::unique_ptr<comm::Transport> transport) {
        Engine engine(std::move(transport), {.driver = driver});
        Trainer<float> trainer(config, engine, data, nullptr);
        trainer.step(), trainer.step();
        const long before = test::allocations();
        for (int step = 0; step < 30; ++step) trainer.step();  // over the border of an epoch
        EXPECT_EQ(test::allocations() - before, 0) << to_text(driver) << ", stage " << stage;
      });
    }
  }
}

TEST(Trainer, AllocatesNothingAfterTheFirstStepOfAReproducibleRun) {
  Config config;
  config.widths = {50, 300, 10};
  config.batch = 30, config.momentum = 0.9, config.reproducible = 8, config.accumulate = 3;
  const data::Dataset data = data::make_synthetic({320, 50, 10, 0, 1});
  collectives::run_ranks(1, [&](int, std::unique_ptr<comm::Transport> transport) {
    Engine engine(std::move(transport), {});
    Trainer<float> trainer(config, engine, data, nullptr);
    trainer.step(), trainer.step();
    const long before = test::allocations();
    for (int step = 0; step < 30; ++step) trainer.step();
    EXPECT_EQ(test::allocations() - before, 0);
  });
}

}  // namespace
}  // namespace annulet::train
