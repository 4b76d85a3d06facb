#include "annulet/train/trainer.hpp"

#include <gmock/gmock.h>

#include <map>
#include <mutex>

#include "annulet/base/error.hpp"
#include "annulet/data/text.hpp"
#include "annulet/train/agree.hpp"
#include "collectives/in_process_ranks.hpp"
#include "train/golden.hpp"

namespace annulet::train {
namespace {

using collectives::Driver;
using collectives::Engine;
using testing::AllOf;
using testing::HasSubstr;

template <class T>
void expect_golden(int world, const Config& config, const double (&losses)[6], double tolerance) {
  const data::Dataset data = golden::dataset();
  collectives::run_ranks(world, [&](int, std::unique_ptr<comm::Transport> transport) {
    Engine engine(std::move(transport), {.deadline = Seconds(60)});
    Trainer<T> trainer(config, engine, data, nullptr);
    golden::set_weights(trainer);
    for (int step = 0; step < 6; ++step) {
      const StepRecord record = trainer.step();
      EXPECT_TRUE(std::abs(record.loss - losses[step]) <= tolerance)
          << record.loss << " at step " << step << " of " << world;
      EXPECT_EQ(record.samples, 8);
      if (step == 0) {
        EXPECT_TRUE(std::abs(record.gradient_norm - golden::kFirstNorm) <= tolerance) << record.gradient_norm;
      }
    }
  });
}

TEST(Trainer, GivesTheGoldenLossesOnAnyNumberOfRanks) {
  for (const int world : {1, 2, 3, 4, 7, 9}) {  // 7 and 9: uneven shares, and a rank without samples
    expect_golden<double>(world, golden::config(), golden::kSgdLosses, 1e-10);
    expect_golden<double>(world, golden::adam(), golden::kAdamLosses, 1e-10);
    expect_golden<float>(world, golden::config(), golden::kSgdLosses, 1e-6);
    expect_golden<float>(world, golden::adam(), golden::kAdamLosses, 1e-6);
  }
}

TEST(Trainer, AccumulatingMicroBatchesIsTheSameStep) {
  for (const Elements parts : {2, 3, 8}) {
    Config config = golden::config();
    config.accumulate = parts;
    expect_golden<double>(1, config, golden::kSgdLosses, 1e-10);
    expect_golden<double>(3, config, golden::kSgdLosses, 1e-10);
  }
}

Config tiny_gpt() {
  Config config;
  config.model = "gpt", config.data = "synthetic", config.vocabulary = 11;
  config.context = 6, config.layers = 2, config.heads = 2, config.width = 8, config.dropout = 0.1;
  config.optimizer = "adamw", config.lr = 0.01, config.clip = 1, config.batch = 7;
  config.bucket = config.first_bucket = Bytes(1000), config.segment = Bytes(256);
  return config;
}

// 3 samples, 4 ranks, batch 2: the second step has one sample, and most ranks none.
TEST(Trainer, CountsRaggedBatchesExactlyWithFewerSamplesThanRanks) {
  const data::Dataset data = data::make_synthetic({3, 5, 3, 0, 7});
  Config config = golden::config();
  config.batch = 2, config.steps = 4;
  std::mutex mutex;
  std::vector<std::vector<double>> losses(5);
  for (const int world : {1, 4}) {
    collectives::run_ranks(world, [&](int rank, std::unique_ptr<comm::Transport> transport) {
      Engine engine(std::move(transport), {.deadline = Seconds(60)});
      Trainer<double> trainer(config, engine, data, &data);
      for (int step = 0; step < 4; ++step) {
        const StepRecord record = trainer.step();
        EXPECT_EQ(record.samples, step % 2 == 0 ? 2 : 1);
        const std::lock_guard lock(mutex);
        if (rank == 0) losses[static_cast<std::size_t>(world)].push_back(record.loss);
      }
      const Evaluation evaluation = trainer.evaluate();
      EXPECT_EQ(evaluation.samples, 3);
      const std::lock_guard lock(mutex);
      if (rank == 0) losses[static_cast<std::size_t>(world)].push_back(evaluation.loss);
    });
  }
  for (std::size_t i = 0; i < losses[1].size(); ++i) EXPECT_TRUE(std::abs(losses[1][i] - losses[4][i]) <= 1e-12) << i;
}

TEST(Trainer, StopsOnAllRanksNamingTheRankAndStepOfANaN) {
  Config config = golden::config();
  config.inject = "nan:rank=1,step=2";
  const data::Dataset data = golden::dataset();
  collectives::run_ranks(3, [&](int, std::unique_ptr<comm::Transport> transport) {
    Engine engine(std::move(transport), {.deadline = Seconds(60)});
    Trainer<float> trainer(config, engine, data, nullptr);
    trainer.step(), trainer.step();
    const std::vector<float> before = golden::weights_of(trainer);
    try {
      trainer.step();
      ADD_FAILURE() << "went on";
    } catch (const AgreedError& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr("rank 1"), HasSubstr("step 2"), HasSubstr("not finite")));
    }
    EXPECT_EQ(golden::weights_of(trainer), before);
  });
}

// Not injected: NaNs that are really in the weights reach the loss of a gpt, and the gradients.
TEST(Trainer, StopsAGptWithANaNInItsWeights) {
  const data::Windows text = data::make_synthetic_text(200, {.context = 6, .classes = 11, .seed = 3});
  for (const char* name : {"wpe.weight", "h.1.attn.c_attn.weight", "ln_f.bias"}) {
    collectives::run_ranks(2, [&](int rank, std::unique_ptr<comm::Transport> transport) {
      Engine engine(std::move(transport), {.deadline = Seconds(60)});
      Trainer<float> trainer(tiny_gpt(), engine, text, nullptr);
      if (rank == 1) trainer.assign_weights({trainer.layout().find(name)->first, 1}, std::vector<float>{NAN});
      EXPECT_THAT([&] { trainer.step(); }, testing::ThrowsMessage<AgreedError>(HasSubstr("rank 1, step 0"))) << name;
    });
  }
}

TEST(Trainer, ClipsByTheNormOfTheSummedGradient) {
  Config config = golden::config();
  config.clip = golden::kFirstNorm / 2;
  const data::Dataset data = golden::dataset();
  std::mutex mutex;
  std::vector<double> moved(4);
  for (const int world : {1, 3}) {
    collectives::run_ranks(world, [&](int rank, std::unique_ptr<comm::Transport> transport) {
      Engine engine(std::move(transport), {.deadline = Seconds(60)});
      Trainer<double> trainer(config, engine, data, nullptr);
      golden::set_weights(trainer);
      const std::vector<double> before = golden::weights_of(trainer);
      EXPECT_NEAR(trainer.step().gradient_norm, golden::kFirstNorm, 1e-10);  // reported before clipping
      double squares = 0;
      const std::vector<double> after = golden::weights_of(trainer);
      for (std::size_t i = 0; i < before.size(); ++i) squares += std::pow(after[i] - before[i], 2);
      const std::lock_guard lock(mutex);
      if (rank == 0) moved[static_cast<std::size_t>(world)] = std::sqrt(squares);
    });
  }
  const double expected = 0.1 * golden::kFirstNorm * (config.clip / (golden::kFirstNorm + 1e-6));
  EXPECT_TRUE(std::abs(moved[1] - expected) <= 1e-12);
  EXPECT_TRUE(std::abs(moved[3] - expected) <= 1e-12);
}

// A mean over tokens whatever rank they are on: 7 windows on 1, 2, 3 and 9 ranks, and evaluation with a ragged window.
TEST(Trainer, GivesAGptTheSameLossesOnAnyNumberOfRanks) {
  const Config config = tiny_gpt();
  const data::Windows train = data::make_synthetic_text(200, {.context = 6, .classes = 11, .seed = 3});
  const data::Windows test =
      data::make_synthetic_text(40, {.context = 6, .order = data::Windows::Order::consecutive, .classes = 11});
  std::mutex mutex;
  std::map<int, std::vector<double>> losses;
  for (const int world : {1, 2, 3, 9}) {
    collectives::run_ranks(world, [&](int rank, std::unique_ptr<comm::Transport> transport) {
      Engine engine(std::move(transport), {.deadline = Seconds(60)});
      Trainer<double> trainer(config, engine, train, &test);
      EXPECT_EQ(trainer.steps_per_epoch(), 4);
      std::vector<double> mine;
      for (int step = 0; step < 6; ++step) mine.push_back(trainer.step().loss);
      const Evaluation evaluation = trainer.evaluate();
      EXPECT_EQ(evaluation.samples, 7);
      EXPECT_EQ(evaluation.targets, 39);
      mine.push_back(evaluation.loss);
      const std::lock_guard lock(mutex);
      if (rank == 0) losses[world] = mine;
    });
  }
  for (const auto& [world, mine] : losses) {
    for (std::size_t i = 0; i < mine.size(); ++i) EXPECT_TRUE(std::abs(mine[i] - losses[1][i]) <= 1e-12) << world;
  }
}

TEST(Trainer, RefusesTextThatDoesNotFitTheModel) {
  const data::Windows text = data::make_synthetic_text(200, {.context = 6, .classes = 12});
  const auto attempt = [&](const Config& config) {
    comm::InProcessNetwork network(1);
    Engine engine(network.connect(0), {});
    Trainer<float> trainer(config, engine, text, nullptr);
  };
  using testing::ThrowsMessage;
  EXPECT_THAT([&] { attempt(tiny_gpt()); }, ThrowsMessage<InputError>(HasSubstr("there are 12 tokens")));
  const data::Windows ragged =
      data::make_synthetic_text(200, {.context = 6, .order = data::Windows::Order::consecutive, .classes = 11});
  EXPECT_THAT(
      [&] {
        comm::InProcessNetwork network(1);
        Engine engine(network.connect(0), {});
        Trainer<float> trainer(tiny_gpt(), engine, ragged, nullptr);
      },
      ThrowsMessage<InputError>(HasSubstr("tokens without a label")));
  Config config = tiny_gpt();
  config.context = 5;
  EXPECT_THAT([&] { attempt(config); }, ThrowsMessage<InputError>(HasSubstr("windows have 6 tokens")));
}

TEST(Trainer, RefusesDataThatDoNotFitTheModel) {
  const data::Dataset data = golden::dataset();
  const auto attempt = [&](void (*spoil)(Config&)) {
    Config config = golden::config();
    spoil(config);
    comm::InProcessNetwork network(1);
    Engine engine(network.connect(0), {});
    Trainer<float> trainer(config, engine, data, nullptr);
  };
  using testing::ThrowsMessage;
  EXPECT_THAT([&] { attempt([](Config& c) {
                      c.widths = {6, 3};
                    }); },
              ThrowsMessage<InputError>(HasSubstr("samples have 5 features")));
  EXPECT_THAT([&] { attempt([](Config& c) {
                      c.widths = {5, 2};
                    }); },
              ThrowsMessage<InputError>(HasSubstr("there are 3 classes")));
  EXPECT_THAT([&] { attempt([](Config& c) { c.loss = "mse"; }); },
              ThrowsMessage<InputError>(HasSubstr("wants real values")));
}

TEST(Trainer, MakesAsManyStepsAsTheEpochsHaveUnlessTold) {
  Config config;
  config.batch = 8, config.epochs = 3;
  const data::Dataset data = data::make_synthetic({20, 5, 3, 0, 7});
  EXPECT_EQ(total_steps(config, data), 9);
  config.steps = 0;
  EXPECT_EQ(total_steps(config, data), 0);
}

}  // namespace
}  // namespace annulet::train
