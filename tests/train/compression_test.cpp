// Training with compressed gradients: the same bits on all ranks whatever the driver and the buckets, the bytes of the
// formulas, and losses near those of dense gradients.
#include <gtest/gtest.h>

#include <mutex>

#include "annulet/data/text.hpp"
#include "annulet/schedule/exchange.hpp"
#include "annulet/train/trainer.hpp"
#include "collectives/in_process_ranks.hpp"
#include "train/golden.hpp"

namespace annulet::train {
namespace {

using collectives::Driver;
using collectives::Engine;

template <class T>
struct CompressedCourse {
  std::vector<double> losses, norms;  // [step]
  std::vector<T> weights;
  Bytes sent{0};     // by all ranks
  Bytes payload{0};  // of a rank in a step
};

struct CompressedSetting {
  Config config;
  const data::Source& data;
  int world;
  Driver driver = Driver::polling;
};

template <class T>
CompressedCourse<T> run_compressed(const CompressedSetting& setting) {
  CompressedCourse<T> course;
  std::mutex mutex;
  collectives::run_ranks(setting.world, [&](int rank, std::unique_ptr<comm::Transport> transport) {
    Engine engine(std::move(transport), {.driver = setting.driver, .deadline = Seconds(60)});
    Trainer<T> trainer(setting.config, engine, setting.data, nullptr);
    std::vector<double> losses, norms;
    Bytes payload{0};
    for (long step = 0; step < setting.config.steps; ++step) {
      const StepRecord record = trainer.step();
      losses.push_back(record.loss), norms.push_back(record.gradient_norm), payload = record.payload;
    }
    const Bytes sent = trainer.settle().steps;
    std::vector<T> weights = golden::weights_of(trainer);
    const std::lock_guard lock(mutex);
    course.sent += sent;
    if (rank == 0) course.losses = losses, course.norms = norms, course.payload = payload;
    if (course.weights.empty()) course.weights = weights;
    EXPECT_EQ(weights, course.weights) << "rank " << rank;
  });
  return course;
}

Config compressed_mlp(const char* compress) {
  Config config;
  config.widths = {20, 33, 17, 5}, config.compress = compress;
  config.batch = 50, config.steps = 20, config.momentum = 0.9, config.dropout = 0.1;
  config.first_bucket = Bytes(300), config.bucket = Bytes(2000), config.segment = Bytes(512);
  return config;
}

class Compression : public testing::Test {
 protected:
  data::Dataset samples_ = data::make_synthetic({180, 20, 5, 0, 3});  // batches of 50, 50, 50, 30
};

TEST_F(Compression, GivesTheSameWeightsOnAllRanksWithEveryDriverAndStage) {
  for (const int world : {1, 2, 3, 4, 8}) {
    const auto narrow = run_compressed<float>({compressed_mlp("bf16"), samples_, world});
    const auto sparse = run_compressed<float>({compressed_mlp("topk:16"), samples_, world});
    for (const Driver driver : {Driver::blocking, Driver::thread}) {
      EXPECT_EQ(run_compressed<float>({compressed_mlp("bf16"), samples_, world, driver}).weights, narrow.weights);
      EXPECT_EQ(run_compressed<float>({compressed_mlp("topk:16"), samples_, world, driver}).weights, sparse.weights);
    }
    Config sharded = compressed_mlp("bf16");
    for (const int stage : {1, 2}) {
      sharded.zero = stage;
      EXPECT_EQ(run_compressed<float>({sharded, samples_, world}).weights, narrow.weights) << "stage " << stage;
    }
    Config other_buckets = compressed_mlp("topk:16");
    other_buckets.bucket = other_buckets.first_bucket = Bytes(1 << 20);
    EXPECT_EQ(run_compressed<float>({other_buckets, samples_, world}).weights, sparse.weights);
  }
}

TEST_F(Compression, SendsTheBytesOfTheFormulas) {
  const Elements n = 20 * 33 + 33 + 33 * 17 + 17 + 17 * 5 + 5;
  Elements kept = 0;
  for (const Elements size : {20 * 33, 33, 33 * 17, 17, 17 * 5, 5}) kept += (size + 15) / 16;
  for (const int world : {2, 4, 8}) {
    const auto narrow = run_compressed<float>({compressed_mlp("bf16"), samples_, world});
    EXPECT_EQ(narrow.sent, Bytes(2 * (world - 1) * n * 2) * 20);
    EXPECT_EQ(narrow.payload, Bytes(2 * n));
    Config sharded = compressed_mlp("bf16");
    sharded.zero = 1;
    EXPECT_EQ(run_compressed<float>({sharded, samples_, world}).sent, Bytes((world - 1) * n * (2 + 4)) * 20)
        << "gradients as bfloat16, weights as they are";
    sharded.zero = 2, sharded.accumulate = 3;
    EXPECT_EQ(run_compressed<float>({sharded, samples_, world}).sent, Bytes((world - 1) * n * (3 * 2 + 4)) * 20)
        << "gradients of every micro-batch";
    const auto sparse = run_compressed<float>({compressed_mlp("topk:16"), samples_, world});
    EXPECT_EQ(sparse.payload, Bytes(8 * kept));
    EXPECT_EQ(sparse.sent, Bytes(8 * kept * (world - 1) * world) * 20) << "(p-1) payload from each rank";
  }
}

TEST_F(Compression, ThatSendsEverythingIsDense) {
  Config sparse = compressed_mlp("topk:1");
  sparse.clip = 0.3, sparse.accumulate = 3;
  Config dense = sparse;
  dense.compress = "none";
  for (const int world : {1, 2, 3}) {
    const auto expected = run_compressed<double>({dense, samples_, world});
    const auto course = run_compressed<double>({sparse, samples_, world, Driver::thread});
    for (std::size_t s = 0; s < expected.losses.size(); ++s) {
      EXPECT_TRUE(std::abs(course.losses[s] - expected.losses[s]) <= 1e-12) << world << ' ' << s;
      EXPECT_TRUE(std::abs(course.norms[s] - expected.norms[s]) <= 1e-12) << world << ' ' << s;
    }
  }
}

TEST_F(Compression, TrainsNearlyLikeDenseGradients) {
  Config config = compressed_mlp("none");
  config.dropout = 0, config.steps = 120, config.momentum = 0;
  const double dense = run_compressed<float>({config, samples_, 3}).losses.back();
  const double untrained = run_compressed<float>({config, samples_, 3}).losses.front();
  config.compress = "bf16";
  EXPECT_TRUE(std::abs(run_compressed<float>({config, samples_, 3}).losses.back() - dense) <= 0.01 * dense);
  config.compress = "topk:16";
  const double sparse = run_compressed<float>({config, samples_, 3}).losses.back();
  EXPECT_TRUE(sparse - dense <= 0.2 * (untrained - dense))
      << sparse << ", dense " << dense << ", at first " << untrained;
}

TEST_F(Compression, TrainsAGptWithATiedHead) {
  const data::Windows text = data::make_synthetic_text(300, {.context = 6, .classes = 17, .seed = 3});
  Config config;
  config.model = "gpt", config.data = "synthetic", config.vocabulary = 17, config.context = 6;
  config.layers = 2, config.heads = 2, config.width = 16, config.batch = 7, config.steps = 10, config.lr = 0.01;
  config.optimizer = "adamw", config.clip = 1;
  config.first_bucket = Bytes(1000), config.bucket = Bytes(6000), config.segment = Bytes(512);
  for (const char* compress : {"bf16", "topk:16"}) {
    config.compress = compress;
    const auto course = run_compressed<float>({config, text, 3});
    EXPECT_LT(course.losses.back(), course.losses.front()) << compress;
    EXPECT_EQ(run_compressed<float>({config, text, 3, Driver::thread}).weights, course.weights) << compress;
  }
}

}  // namespace
}  // namespace annulet::train
