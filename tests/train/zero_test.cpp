// The stages of ZeRO train like stage 0: losses, norms, weights, evaluation, and the bytes of the formula.
#include <gmock/gmock.h>

#include <mutex>

#include "annulet/data/text.hpp"
#include "annulet/train/agree.hpp"
#include "annulet/train/trainer.hpp"
#include "collectives/in_process_ranks.hpp"
#include "train/golden.hpp"

namespace annulet::train {
namespace {

using collectives::Driver;
using collectives::Engine;

const std::vector<int> kStages{1, 2, 3};
constexpr long kSteps = 5;  // the fourth of the mlp is a ragged one

// What all ranks say of a run.
template <class T>
struct Course {
  std::vector<double> losses, norms;  // [step]
  std::vector<T> weights;
  double evaluation = 0;
  Bytes sent{0}, sent_by_evaluations{0};  // by all ranks
  long evaluation_passes = 0;
};

struct Setting {
  Config config;
  const data::Source& data;
  int world;
  Driver driver = Driver::polling;
};

template <class T>
Course<T> run(const Setting& setting, int stage) {
  Course<T> course;
  std::mutex mutex;
  collectives::run_ranks(setting.world, [&](int rank, std::unique_ptr<comm::Transport> transport) {
    Config config = setting.config;
    config.zero = stage;
    Engine engine(std::move(transport), {.driver = setting.driver, .deadline = Seconds(60)});
    Trainer<T> trainer(config, engine, setting.data, &setting.data);
    std::vector<double> losses, norms;
    for (long step = 0; step < config.steps; ++step) {
      const StepRecord record = trainer.step();
      losses.push_back(record.loss), norms.push_back(record.gradient_norm);
      if (step == config.steps / 2) trainer.evaluate();
    }
    const double evaluation = trainer.evaluate().loss;
    const auto sent = trainer.settle();
    std::vector<T> weights = golden::weights_of(trainer);
    const std::lock_guard lock(mutex);
    course.sent += sent.steps, course.sent_by_evaluations += sent.evaluations;
    course.evaluation_passes = sent.evaluation_passes;
    if (rank == 0) course.losses = losses, course.norms = norms, course.evaluation = evaluation;
    if (course.weights.empty()) course.weights = weights;
    EXPECT_EQ(weights, course.weights) << "rank " << rank;
  });
  return course;
}

double distance(double a, double b) { return std::abs(a - b) / std::max(1e-300, std::abs(b)); }

template <class T>
void expect_like_stage_0(const Setting& setting, double first, double last) {
  const Course<T> expected = run<T>(setting, 0);
  for (const int stage : kStages) {
    SCOPED_TRACE(testing::Message() << "stage " << stage << " on " << setting.world << " ranks, "
                                    << to_text(setting.driver) << ", " << setting.config.model);
    const Course<T> course = run<T>(setting, stage);
    EXPECT_TRUE(distance(course.losses.front(), expected.losses.front()) <= first) << course.losses.front();
    EXPECT_TRUE(distance(course.norms.front(), expected.norms.front()) <= first) << course.norms.front();
    EXPECT_TRUE(distance(course.losses.back(), expected.losses.back()) <= last) << course.losses.back();
    EXPECT_TRUE(distance(course.norms.back(), expected.norms.back()) <= last) << course.norms.back();
    EXPECT_TRUE(distance(course.evaluation, expected.evaluation) <= last) << course.evaluation;
    const auto parameters = std::ssize(course.weights);
    const auto bytes = [](Elements n) { return Bytes(sizeof(T)) * n; };
    const auto traffic = schedule::zero_traffic(stage, parameters, setting.world, setting.config.accumulate);
    EXPECT_EQ(course.sent, bytes(traffic.total()) * setting.config.steps);
    EXPECT_EQ(course.sent_by_evaluations,
              bytes(schedule::zero_evaluation_traffic(stage, parameters, setting.world)) * course.evaluation_passes);
  }
}

Config mlp() {
  Config config;
  config.widths = {20, 33, 17, 5};
  config.batch = 50, config.steps = kSteps, config.momentum = 0.9, config.dropout = 0.1;
  config.first_bucket = Bytes(300), config.bucket = Bytes(2000), config.segment = Bytes(512);
  return config;
}

Config gpt() {
  Config config;
  config.model = "gpt", config.data = "synthetic", config.vocabulary = 17, config.context = 6;
  config.layers = 3, config.heads = 2, config.width = 16;
  config.batch = 7, config.steps = kSteps, config.lr = 0.05;
  config.first_bucket = Bytes(1000), config.bucket = Bytes(6000), config.segment = Bytes(512);
  return config;
}

class Zero : public testing::Test {
 protected:
  data::Dataset samples_ = data::make_synthetic({180, 20, 5, 0, 3});  // batches of 50, 50, 50, 30
  data::Windows text_ = data::make_synthetic_text(300, {.context = 6, .classes = 17, .seed = 3});
};

TEST_F(Zero, TrainsLikeStage0OnAnyNumberOfRanksWithEveryDriver) {
  for (const Driver driver : {Driver::blocking, Driver::polling, Driver::thread}) {
    for (const int world : {1, 2, 3, 4, 7}) {
      expect_like_stage_0<double>({mlp(), samples_, world, driver}, 1e-10, 1e-10);
      expect_like_stage_0<double>({gpt(), text_, world, driver}, 1e-10, 1e-10);
    }
  }
}

TEST_F(Zero, TrainsLikeStage0InFloatAsFarAsFloatGoes) {
  for (Config config : {mlp(), gpt()}) {
    config.steps = 20;
    const data::Source& data = config.model == "gpt" ? static_cast<const data::Source&>(text_) : samples_;
    for (const Driver driver : {Driver::blocking, Driver::polling, Driver::thread}) {
      for (const int world : {1, 2, 3, 4, 7}) expect_like_stage_0<float>({config, data, world, driver}, 1e-6, 1e-4);
    }
  }
}

TEST_F(Zero, TrainsLikeStage0WhateverTheOptimizerAndTheModel) {
  Config adam = mlp();
  adam.optimizer = "adamw", adam.lr = 0.01, adam.momentum = 0, adam.clip = 0.5, adam.decay = 0.1;
  adam.decay_on = "matrices";
  Config recomputing = gpt();
  recomputing.recompute = true, recomputing.dropout = 0.1, recomputing.optimizer = "adam", recomputing.lr = 0.003;
  Config untied = gpt();
  untied.tied = false, untied.clip = 0.1, untied.decay = 0.01;
  expect_like_stage_0<double>({adam, samples_, 3}, 1e-10, 1e-10);
  expect_like_stage_0<double>({recomputing, text_, 3}, 1e-10, 1e-10);
  expect_like_stage_0<double>({untied, text_, 4}, 1e-10, 1e-10);
}

TEST_F(Zero, AccumulatesMicroBatches) {
  Config config = gpt();
  config.accumulate = 3;
  Config dense = mlp();
  dense.accumulate = 4;
  for (const int world : {1, 3}) {
    expect_like_stage_0<double>({config, text_, world}, 1e-10, 1e-10);
    expect_like_stage_0<double>({dense, samples_, world, Driver::thread}, 1e-10, 1e-10);
  }
}

// 3 parameters on 5 ranks; buckets of one tensor.
TEST_F(Zero, TrainsFewerParametersThanRanks) {
  Config config;
  config.widths = {2, 1}, config.loss = "mse", config.batch = 8, config.steps = 5;
  config.bucket = config.first_bucket = Bytes(4);
  std::vector<double> x, y;
  for (int n = 0; n < 16; ++n) x.push_back(std::sin(n)), x.push_back(std::cos(n)), y.push_back(0.1 * n);
  const data::Dataset points = data::Dataset::regression(std::move(x), std::move(y), 1);
  expect_like_stage_0<double>({config, points, 5}, 1e-10, 1e-10);
}

TEST_F(Zero, GivesTheGoldenLossesAndNorm) {
  const data::Dataset data = golden::dataset();
  for (const int stage : kStages) {
    Config config = golden::adam();
    config.zero = stage;
    collectives::run_ranks(3, [&](int, std::unique_ptr<comm::Transport> transport) {
      Engine engine(std::move(transport), {.deadline = Seconds(60)});
      Trainer<double> trainer(config, engine, data, nullptr);
      golden::set_weights(trainer);
      for (int step = 0; step < 6; ++step) {
        const StepRecord record = trainer.step();
        EXPECT_TRUE(std::abs(record.loss - golden::kAdamLosses[step]) <= 1e-10) << record.loss;
        if (step > 0) continue;
        EXPECT_TRUE(std::abs(record.gradient_norm - golden::kFirstNorm) <= 1e-10) << record.gradient_norm;
      }
      trainer.settle();
    });
  }
}

// The first step sends no weights, since all ranks have them; its own arrive during the second.
TEST_F(Zero, SendsUpdatedWeightsDuringTheNextStep) {
  Config config = gpt();
  config.zero = 1;
  std::mutex mutex;
  std::vector<Bytes> sent(3, Bytes(0));
  collectives::run_ranks(3, [&](int, std::unique_ptr<comm::Transport> transport) {
    Engine engine(std::move(transport), {.driver = Driver::polling, .deadline = Seconds(60)});
    Trainer<float> trainer(config, engine, text_, nullptr);
    for (Bytes& bytes : sent) {
      const Bytes mine = trainer.step().wire;
      const std::lock_guard lock(mutex);
      bytes += mine;
    }
    EXPECT_GT(trainer.settle().steps, Bytes(0));
  });
  EXPECT_EQ(sent[1], 2 * sent[0]);
  EXPECT_EQ(sent[2], sent[1]);
}

// By the allocators: not only the states, but buckets, activations and scratch too are what the formulas say.
TEST_F(Zero, HoldsWhatWasPlannedOfEveryKindOfMemory) {
  Config adam = mlp();
  adam.optimizer = "adam", adam.momentum = 0;
  for (const auto& [base, source] : {std::pair<Config, const data::Source&>{adam, samples_}, {gpt(), text_}}) {
    for (int stage = 0; stage < schedule::kZeroStages; ++stage) {
      Config config = base;
      config.zero = stage;
      collectives::run_ranks(3, [&](int rank, std::unique_ptr<comm::Transport> transport) {
        Engine engine(std::move(transport), {.deadline = Seconds(60)});
        Trainer<float> trainer(config, engine, source, &source);
        trainer.step();
        trainer.settle();
        for (const MemoryRecord& record : trainer.memory()) {
          EXPECT_EQ(record.counted, record.planned) << record.name << ", stage " << stage << ", rank " << rank;
        }
      });
    }
  }
}

TEST_F(Zero, StopsOnAllRanksNamingTheRankOfANaN) {
  for (const int stage : kStages) {
    Config config = gpt();
    config.zero = stage, config.inject = "nan:rank=1,step=2";
    collectives::run_ranks(3, [&](int, std::unique_ptr<comm::Transport> transport) {
      Engine engine(std::move(transport), {.deadline = Seconds(60)});
      Trainer<float> trainer(config, engine, text_, nullptr);
      trainer.step(), trainer.step();
      EXPECT_THAT([&] { trainer.step(); }, testing::ThrowsMessage<AgreedError>(testing::HasSubstr("rank 1, step 2")));
    });
  }
}

}  // namespace
}  // namespace annulet::train
