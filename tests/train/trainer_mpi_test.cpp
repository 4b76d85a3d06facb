// Training over real MPI: the same numbers as one rank, the same bits on all ranks and with every driver.
#include "annulet/train/trainer.hpp"

#include <gtest/gtest.h>

#include "annulet/comm/emulated.hpp"
#include "annulet/comm/in_process.hpp"
#include "annulet/comm/mpi.hpp"
#include "annulet/comm/mpi_transport.hpp"
#include "annulet/data/text.hpp"
#include "train/golden.hpp"

namespace annulet::train {
namespace {

using collectives::Driver;
using collectives::Engine;

template <class T>
struct Course {
  std::vector<StepRecord> steps;
  std::vector<T> weights;
};

template <class T>
Course<T> train(const Config& config, const data::Source& data, std::unique_ptr<comm::Transport> transport,
                Driver driver, bool is_golden = false) {
  Engine engine(std::move(transport), {.driver = driver, .deadline = Seconds(60)});
  Trainer<T> trainer(config, engine, data, nullptr);
  if (is_golden) golden::set_weights(trainer);
  Course<T> course;
  for (long step = 0; step < config.steps; ++step) course.steps.push_back(trainer.step());
  course.weights = golden::weights_of(trainer);
  return course;
}

class TrainerOverMpi : public testing::Test {
 protected:
  std::unique_ptr<comm::Transport> all_ranks() const { return comm::make_mpi_transport(world_); }

  template <class T>
  Course<T> alone(const Config& config, const data::Source& data) {
    comm::InProcessNetwork network(1);
    return train<T>(config, data, network.connect(0), Driver::blocking);
  }

  static Config twenty_steps() {
    Config config;
    config.widths = {20, 33, 17, 5};
    config.batch = 50, config.steps = 20, config.momentum = 0.9, config.dropout = 0.1;
    config.first_bucket = Bytes(300), config.bucket = Bytes(2000), config.segment = Bytes(512);
    return config;
  }

  // Relative to the loss's own size.
  static double distance(double a, double b) { return std::abs(a - b) / std::max(1e-300, std::abs(b)); }

  comm::Communicator world_ = comm::duplicate(MPI_COMM_WORLD);
  data::Dataset data_ = data::make_synthetic({180, 20, 5, 0, 3});  // batches of 50, 50, 50, 30
};

TEST_F(TrainerOverMpi, GivesTheGoldenLosses) {
  const data::Dataset data = golden::dataset();
  const auto expect = [&](const auto& course, const double(&losses)[6], double tolerance) {
    for (std::size_t s = 0; s < 6; ++s) {
      EXPECT_TRUE(std::abs(course.steps[s].loss - losses[s]) <= tolerance) << course.steps[s].loss << " at step " << s;
    }
    EXPECT_TRUE(std::abs(course.steps[0].gradient_norm - golden::kFirstNorm) <= tolerance);
  };
  expect(train<double>(golden::config(), data, all_ranks(), Driver::polling, true), golden::kSgdLosses, 1e-10);
  expect(train<double>(golden::adam(), data, all_ranks(), Driver::polling, true), golden::kAdamLosses, 1e-10);
  expect(train<float>(golden::config(), data, all_ranks(), Driver::polling, true), golden::kSgdLosses, 1e-6);
  expect(train<float>(golden::adam(), data, all_ranks(), Driver::polling, true), golden::kAdamLosses, 1e-6);
}

TEST_F(TrainerOverMpi, AgreesWithOneRankInDouble) {
  for (const char* optimizer : {"sgd", "adamw"}) {
    Config config = twenty_steps();
    config.optimizer = optimizer;
    config.lr = config.optimizer == "sgd" ? 0.1 : 0.01;
    const auto one = alone<double>(config, data_), many = train<double>(config, data_, all_ranks(), Driver::polling);
    for (std::size_t s = 0; s < one.steps.size(); ++s) {
      EXPECT_TRUE(distance(many.steps[s].loss, one.steps[s].loss) <= 1e-10) << optimizer << ' ' << s;
      EXPECT_TRUE(distance(many.steps[s].gradient_norm, one.steps[s].gradient_norm) <= 1e-10) << optimizer << ' ' << s;
    }
  }
}

TEST_F(TrainerOverMpi, AgreesWithOneRankInFloatAsFarAsFloatGoes) {
  const Config config = twenty_steps();
  const auto one = alone<float>(config, data_), many = train<float>(config, data_, all_ranks(), Driver::polling);
  EXPECT_TRUE(distance(many.steps[0].loss, one.steps[0].loss) <= 1e-6);
  EXPECT_TRUE(distance(many.steps[0].gradient_norm, one.steps[0].gradient_norm) <= 1e-6);
  EXPECT_TRUE(distance(many.steps[19].loss, one.steps[19].loss) <= 1e-4);
  EXPECT_TRUE(distance(many.steps[19].gradient_norm, one.steps[19].gradient_norm) <= 1e-4);
}

TEST_F(TrainerOverMpi, HasTheSameBitsOnEveryRankWithEveryDriverAndOnASlowLink) {
  const Config config = twenty_steps();
  const auto polling = train<float>(config, data_, all_ranks(), Driver::polling);
  const auto blocking = train<float>(config, data_, all_ranks(), Driver::blocking);
  const auto thread = train<float>(config, data_, all_ranks(), Driver::thread);
  const auto slow =
      train<float>(config, data_, comm::emulate(all_ranks(), {Seconds(1e-4), ByteRate(1e8)}), Driver::polling);
  EXPECT_EQ(polling.weights, blocking.weights);
  EXPECT_EQ(polling.weights, thread.weights);
  EXPECT_EQ(polling.weights, slow.weights);
  const std::string bits(reinterpret_cast<const char*>(polling.weights.data()), polling.weights.size() * sizeof(float));
  for (const std::string& other : world_.all_gather(bits)) EXPECT_TRUE(other == bits);
}

TEST_F(TrainerOverMpi, GivesAGptTheSameLossesAsOneRankAndTheSameBitsWithEveryDriver) {
  Config config;
  config.model = "gpt", config.vocabulary = 17, config.context = 12, config.width = 32, config.layers = 2;
  config.optimizer = "adamw", config.lr = 0.003, config.batch = 5, config.steps = 20;
  config.first_bucket = Bytes(4000), config.bucket = Bytes(30000), config.segment = Bytes(4096);
  const data::Windows text = data::make_synthetic_text(600, {.context = 12, .classes = 17});
  const auto one = alone<float>(config, text), polling = train<float>(config, text, all_ranks(), Driver::polling);
  EXPECT_TRUE(distance(polling.steps[0].loss, one.steps[0].loss) <= 1e-6);
  EXPECT_TRUE(distance(polling.steps[19].loss, one.steps[19].loss) <= 1e-4);
  EXPECT_EQ(train<float>(config, text, all_ranks(), Driver::thread).weights, polling.weights);
}

// Sums in another order, but the same ones on all ranks.
TEST_F(TrainerOverMpi, GivesTheSameLossesByEveryAlgorithm) {
  for (const schedule::Algorithm algorithm : schedule::algorithms_of(schedule::Collective::all_reduce)) {
    Config config = twenty_steps();
    config.algorithm = to_text(algorithm);
    const auto one = alone<double>(config, data_), many = train<double>(config, data_, all_ranks(), Driver::polling);
    EXPECT_TRUE(distance(many.steps[19].loss, one.steps[19].loss) <= 1e-10) << config.algorithm;
    const std::string bits(reinterpret_cast<const char*>(many.weights.data()), many.weights.size() * sizeof(double));
    for (const std::string& other : world_.all_gather(bits)) EXPECT_TRUE(other == bits) << config.algorithm;
  }
}

TEST_F(TrainerOverMpi, TrainsAtEveryStageOfZeroLikeStage0) {
  const Config config = twenty_steps();
  const auto plain = train<double>(config, data_, all_ranks(), Driver::polling);
  for (const int stage : {1, 2, 3}) {
    for (const Driver driver : {Driver::blocking, Driver::polling, Driver::thread}) {
      Config sharded = config;
      sharded.zero = stage;
      const auto course = train<double>(sharded, data_, all_ranks(), driver);
      for (std::size_t s = 0; s < plain.steps.size(); ++s) {
        EXPECT_TRUE(distance(course.steps[s].loss, plain.steps[s].loss) <= 1e-10) << stage << ' ' << s;
        EXPECT_TRUE(distance(course.steps[s].gradient_norm, plain.steps[s].gradient_norm) <= 1e-10)
            << stage << ' ' << s;
      }
    }
  }
}

TEST_F(TrainerOverMpi, TrainsWithCompressedGradientsToTheSameBitsOnEveryRankWithEveryDriver) {
  for (const char* compress : {"bf16", "topk:16"}) {
    Config config = twenty_steps();
    config.compress = compress;
    const auto polling = train<float>(config, data_, all_ranks(), Driver::polling);
    EXPECT_EQ(polling.weights, train<float>(config, data_, all_ranks(), Driver::blocking).weights) << compress;
    EXPECT_EQ(polling.weights, train<float>(config, data_, all_ranks(), Driver::thread).weights) << compress;
    EXPECT_LT(polling.steps.back().loss, polling.steps.front().loss) << compress;
    const std::string bits(reinterpret_cast<const char*>(polling.weights.data()),
                           polling.weights.size() * sizeof(float));
    for (const std::string& other : world_.all_gather(bits)) EXPECT_TRUE(other == bits) << compress;
    const double formula = config.compress == "bf16"
                               ? 2.0 * (world_.size() - 1) * static_cast<double>(polling.weights.size()) * 2
                               : (world_.size() - 1) * world_.size() * polling.steps[0].payload.as_double();
    for (const StepRecord& record : polling.steps) EXPECT_EQ(world_.sum(record.wire.as_double()), formula) << compress;
  }
}

TEST_F(TrainerOverMpi, SendsTheBytesOfTheFormula) {
  const auto course = train<float>(twenty_steps(), data_, all_ranks(), Driver::polling);
  const auto parameters = static_cast<double>(course.weights.size());
  for (const StepRecord& record : course.steps) {
    EXPECT_EQ(world_.sum(record.wire.as_double()), 2.0 * (world_.size() - 1) * parameters * 4);
    EXPECT_EQ(record.payload.as_double(), parameters * 4);
  }
}

}  // namespace
}  // namespace annulet::train
