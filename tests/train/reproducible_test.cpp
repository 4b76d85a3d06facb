// Reproducible training: the same bits on any number of ranks, with every driver, bucket size and stage.
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

// What all ranks say of a run; every value to its last bit.
template <class T>
struct FixedCourse {
  std::vector<double> losses, norms, evaluations;
  std::vector<T> weights;
  Bytes sent{0};  // by all ranks

  friend bool operator==(const FixedCourse& a, const FixedCourse& b) {
    return a.losses == b.losses && a.norms == b.norms && a.evaluations == b.evaluations && a.weights == b.weights;
  }
};

template <class T>
FixedCourse<T> train_on(const Config& config, const data::Source& data, int world, Driver driver = Driver::polling) {
  FixedCourse<T> course;
  std::mutex mutex;
  collectives::run_ranks(world, [&](int rank, std::unique_ptr<comm::Transport> transport) {
    Engine engine(std::move(transport), {.driver = driver, .deadline = Seconds(60)});
    Trainer<T> trainer(config, engine, data, &data);
    FixedCourse<T> mine;
    for (long step = 0; step < config.steps; ++step) {
      const StepRecord record = trainer.step();
      mine.losses.push_back(record.loss), mine.norms.push_back(record.gradient_norm);
      if (step == config.steps / 2) mine.evaluations.push_back(trainer.evaluate().loss);
    }
    mine.evaluations.push_back(trainer.evaluate().loss);
    const Bytes sent = trainer.settle().steps;
    mine.weights = golden::weights_of(trainer);
    const std::lock_guard lock(mutex);
    course.sent += sent;
    if (course.weights.empty()) {
      mine.sent = course.sent;
      course = mine;
    }
    EXPECT_TRUE(mine == course) << "rank " << rank;
  });
  return course;
}

template <class T>
void expect_same_bits(const FixedCourse<T>& course, const FixedCourse<T>& expected) {
  EXPECT_EQ(course.losses, expected.losses);
  EXPECT_EQ(course.norms, expected.norms);
  EXPECT_EQ(course.evaluations, expected.evaluations);
  EXPECT_TRUE(course.weights == expected.weights);
}

Config fixed_mlp() {
  Config config;
  config.widths = {20, 33, 17, 5};
  config.batch = 50, config.steps = 8, config.momentum = 0.9, config.dropout = 0.1, config.clip = 0.4;
  config.first_bucket = Bytes(300), config.bucket = Bytes(2000), config.segment = Bytes(512);
  config.reproducible = 8;
  return config;
}

Config fixed_gpt() {
  Config config;
  config.model = "gpt", config.data = "synthetic", config.vocabulary = 17, config.context = 6;
  config.layers = 2, config.heads = 2, config.width = 16, config.dropout = 0.1;
  config.batch = 11, config.steps = 6, config.optimizer = "adamw", config.lr = 0.003, config.decay = 0.1;
  config.first_bucket = Bytes(1000), config.bucket = Bytes(6000), config.segment = Bytes(512);
  config.reproducible = 8;
  return config;
}

class ReproducibleTraining : public testing::Test {
 protected:
  data::Dataset samples_ = data::make_synthetic({180, 20, 5, 0, 3});  // batches of 50, 50, 50, 30
  data::Windows text_ = data::make_synthetic_text(300, {.context = 6, .classes = 17, .seed = 3});
};

TEST_F(ReproducibleTraining, HasTheSameBitsOnAnyNumberOfRanks) {
  const auto dense = train_on<float>(fixed_mlp(), samples_, 1);
  const auto sequence = train_on<float>(fixed_gpt(), text_, 1);
  for (int world = 2; world <= 8; ++world) {
    SCOPED_TRACE(testing::Message() << world << " ranks");
    expect_same_bits(train_on<float>(fixed_mlp(), samples_, world), dense);
    expect_same_bits(train_on<float>(fixed_gpt(), text_, world), sequence);
  }
}

TEST_F(ReproducibleTraining, HasTheSameBitsWhateverTheDriverBucketAndStage) {
  const auto dense = train_on<float>(fixed_mlp(), samples_, 1);
  const auto sequence = train_on<double>(fixed_gpt(), text_, 1);
  for (const Driver driver : {Driver::blocking, Driver::thread}) {
    for (const int bucket : {1, 700, 1 << 20}) {
      for (const int stage : {0, 1, 2, 3}) {
        SCOPED_TRACE(testing::Message() << to_text(driver) << ", buckets of " << bucket << ", stage " << stage);
        Config config = fixed_mlp(), text = fixed_gpt();
        config.first_bucket = text.first_bucket = Bytes(bucket);
        config.bucket = text.bucket = Bytes(bucket);
        config.zero = text.zero = stage;
        expect_same_bits(train_on<float>(config, samples_, 3, driver), dense);
        expect_same_bits(train_on<double>(text, text_, 5, driver), sequence);
      }
    }
  }
}

TEST_F(ReproducibleTraining, HasTheSameBitsHoweverManyMicroBatchesAreAccumulated) {
  const auto expected = train_on<float>(fixed_gpt(), text_, 1);
  for (const auto& [world, accumulate] : {std::pair{1, 8}, {1, 3}, {2, 2}, {3, 3}}) {
    for (const int stage : {0, 1, 2, 3}) {
      Config config = fixed_gpt();
      config.accumulate = accumulate, config.zero = stage;
      SCOPED_TRACE(testing::Message() << world << " ranks, " << accumulate << " micro-batches, stage " << stage);
      expect_same_bits(train_on<float>(config, text_, world), expected);
    }
  }
}

// Micro-shards without samples, and one that is a whole batch.
TEST_F(ReproducibleTraining, TakesAnyNumberOfMicroShards) {
  for (const int micro_shards : {1, 3, 7, 13}) {
    Config config = fixed_gpt();
    config.reproducible = micro_shards, config.batch = 5;
    const auto alone = train_on<float>(config, text_, 1);
    for (const int world : {2, 3, 6, 7}) {
      if (world > micro_shards) continue;
      SCOPED_TRACE(testing::Message() << micro_shards << " micro-shards on " << world << " ranks");
      expect_same_bits(train_on<float>(config, text_, world), alone);
    }
  }
}

TEST_F(ReproducibleTraining, TrainsAsTheDefaultDoesButForRounding) {
  Config config = fixed_gpt();
  const auto reproducible = train_on<double>(config, text_, 3);
  config.reproducible = 0;
  const auto plain = train_on<double>(config, text_, 3);
  for (std::size_t s = 0; s < plain.losses.size(); ++s) {
    EXPECT_FALSE(!(std::abs(reproducible.losses[s] - plain.losses[s]) <= 1e-10)) << s;
    EXPECT_FALSE(!(std::abs(reproducible.norms[s] - plain.norms[s]) <= 1e-10)) << s;
  }
  EXPECT_NEAR(reproducible.evaluations.back(), plain.evaluations.back(), 1e-10);
}

TEST_F(ReproducibleTraining, GivesTheGoldenLosses) {
  const data::Dataset data = golden::dataset();
  for (const int micro_shards : {2, 8, 11}) {
    Config config = golden::config();
    config.reproducible = micro_shards;
    collectives::run_ranks(2, [&](int, std::unique_ptr<comm::Transport> transport) {
      Engine engine(std::move(transport), {.deadline = Seconds(60)});
      Trainer<double> trainer(config, engine, data, nullptr);
      golden::set_weights(trainer);
      for (const double expected : golden::kSgdLosses) {
        const double loss = trainer.step().loss;
        EXPECT_TRUE(std::abs(loss - expected) <= 1e-10) << loss;
      }
    });
  }
}

// Sums of 8 pieces, one of 4 chunks and 3 of them one rank's own, go twice over the wire; three ranks have 5 pieces.
// Stage 3 gathers weights twice in each pass, of which three ranks make up to two.
TEST_F(ReproducibleTraining, SendsWhatIsStated) {
  for (const auto& [world, stage, times] : {std::tuple{2, 0, 2.0},
                                            {4, 1, 2.0},
                                            {8, 2, 2.0},
                                            {2, 3, 3.0},
                                            {3, 0, 8.0 / 3},
                                            {3, 2, 8.0 / 3},
                                            {3, 3, 5.0 / 3 + 4.0}}) {
    SCOPED_TRACE(testing::Message() << world << " ranks, stage " << stage);
    Config config = fixed_mlp();
    config.widths = {20, 12, 12, 12}, config.steps = 3, config.zero = stage;
    const Elements parameters = 20 * 12 + 12 + 2 * (12 * 12 + 12);
    config.bucket = config.first_bucket = Bytes(1 << 20);
    const double sent = train_on<float>(config, samples_, world).sent.as_double();
    EXPECT_EQ(sent, 3 * 4 * times * static_cast<double>((world - 1) * parameters));
  }
}

TEST_F(ReproducibleTraining, StopsOnAllRanksNamingTheRankOfANaN) {
  Config config = fixed_gpt();
  config.inject = "nan:rank=1,step=2";
  collectives::run_ranks(3, [&](int, std::unique_ptr<comm::Transport> transport) {
    Engine engine(std::move(transport), {.deadline = Seconds(60)});
    Trainer<float> trainer(config, engine, text_, nullptr);
    trainer.step(), trainer.step();
    EXPECT_THAT([&] { trainer.step(); }, testing::ThrowsMessage<AgreedError>(testing::StartsWith("rank 1, step 2: ")));
  });
}

TEST_F(ReproducibleTraining, IsRefusedWithFewerMicroShardsThanRanksOrMicroBatches) {
  const auto refusal = [&](int micro_shards, Elements accumulate) {
    std::string text;
    std::mutex mutex;
    Config config = fixed_gpt();
    config.reproducible = micro_shards, config.accumulate = accumulate;
    collectives::run_ranks(4, [&](int, std::unique_ptr<comm::Transport> transport) {
      Engine engine(std::move(transport), {});
      try {
        const Trainer<float> trainer(config, engine, text_, nullptr);
      } catch (const InputError& error) {
        const std::lock_guard lock(mutex);
        text = error.what();
      }
    });
    return text;
  };
  EXPECT_THAT(refusal(3, 1),
              testing::HasSubstr("reproducible = 3 on 4 ranks (every rank computes a micro-shard at least). "
                                 "Choose 4 or more"));
  EXPECT_THAT(refusal(8, 3), testing::HasSubstr("a rank has 2 micro-shards"));
  EXPECT_EQ(refusal(8, 2), "");
}

}  // namespace
}  // namespace annulet::train
