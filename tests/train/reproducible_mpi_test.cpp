// Reproducible training over real MPI: the weights of one rank, bit for bit, after fifty steps.
#include <gtest/gtest.h>

#include "annulet/comm/in_process.hpp"
#include "annulet/comm/mpi.hpp"
#include "annulet/comm/mpi_transport.hpp"
#include "annulet/data/text.hpp"
#include "annulet/train/trainer.hpp"
#include "train/golden.hpp"

namespace annulet::train {
namespace {

std::vector<float> trained_weights(const Config& config, const data::Source& data,
                                   std::unique_ptr<comm::Transport> transport, collectives::Driver driver) {
  collectives::Engine engine(std::move(transport), {.driver = driver, .deadline = Seconds(60)});
  Trainer<float> trainer(config, engine, data, nullptr);
  for (long step = 0; step < config.steps; ++step) trainer.step();
  return golden::weights_of(trainer);
}

class ReproducibleOverMpi : public testing::Test {
 protected:
  // On all ranks with every driver at every stage, and on each rank alone.
  void expect_the_bits_of_one_rank(Config config, const data::Source& data) {
    using collectives::Driver;
    comm::InProcessNetwork network(1);
    const auto alone = trained_weights(config, data, network.connect(0), Driver::blocking);
    for (const Driver driver : {Driver::blocking, Driver::polling, Driver::thread}) {
      for (const int stage : {0, 1, 2, 3}) {
        config.zero = stage;
        EXPECT_TRUE(trained_weights(config, data, comm::make_mpi_transport(world_), driver) == alone)
            << to_text(driver) << ", stage " << stage << ", " << world_.size() << " ranks";
      }
    }
  }

  comm::Communicator world_ = comm::duplicate(MPI_COMM_WORLD);
};

TEST_F(ReproducibleOverMpi, TrainsAnMlpToTheBitsOfOneRank) {
  Config config;
  config.widths = {20, 33, 17, 5};
  config.batch = 50, config.steps = 50, config.momentum = 0.9, config.dropout = 0.1, config.clip = 1;
  config.first_bucket = Bytes(300), config.bucket = Bytes(2000), config.segment = Bytes(512);
  config.reproducible = 8;
  expect_the_bits_of_one_rank(config, data::make_synthetic({180, 20, 5, 0, 3}));
}

TEST_F(ReproducibleOverMpi, TrainsAGptToTheBitsOfOneRank) {
  Config config;
  config.model = "gpt", config.vocabulary = 17, config.context = 12, config.width = 32, config.layers = 2;
  config.optimizer = "adamw", config.lr = 0.003, config.batch = 9, config.steps = 50;
  config.first_bucket = Bytes(4000), config.bucket = Bytes(30000), config.segment = Bytes(4096);
  config.reproducible = 8;
  expect_the_bits_of_one_rank(config, data::make_synthetic_text(600, {.context = 12, .classes = 17}));
}

}  // namespace
}  // namespace annulet::train
