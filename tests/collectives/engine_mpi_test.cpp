#include <gmock/gmock.h>

#include <numeric>

#include "annulet/base/error.hpp"
#include "annulet/collectives/engine.hpp"
#include "annulet/comm/emulated.hpp"
#include "annulet/comm/mpi.hpp"
#include "annulet/comm/mpi_transport.hpp"
#include "annulet/schedule/ring.hpp"

namespace annulet::collectives {
namespace {

constexpr Driver kDrivers[] = {Driver::blocking, Driver::polling, Driver::thread};

// A null communicator has no transport over MPI; a world of one needs none.
class EngineOverMpi : public testing::Test {
 protected:
  std::unique_ptr<comm::Transport> transport(const comm::MpiTransportOptions& options = {}) const {
    return comm::make_mpi_transport(world_, options);
  }

  template <class T>
  OperationSpec spec(std::vector<T>& data, Elements segment) const {
    const schedule::RingShape shape{world_.rank(), world_.size(), static_cast<Elements>(data.size()), segment, 2};
    return {"all-reduce", comm::Purpose::gradients, sum_of<T>(),
            std::make_shared<schedule::Plan>(schedule::ring_all_reduce(shape)),
            std::as_writable_bytes(std::span(data))};
  }

  // Small integers: sums are exact.
  template <class T>
  std::vector<T> input(std::size_t n) const {
    std::vector<T> data(n);
    for (std::size_t i = 0; i < n; ++i)
      data[i] = static_cast<T>((i * 13 + static_cast<std::size_t>(world_.rank()) * 5) % 97);
    return data;
  }

  template <class T>
  void equals_mpi(std::size_t n, Elements segment, Driver driver, MPI_Datatype type,
                  const comm::MpiTransportOptions& options = {}) {
    auto ours = input<T>(n), theirs = input<T>(n);
    Engine engine(transport(options), {.driver = driver, .deadline = Seconds(60)});
    const OperationId id = engine.declare(spec(ours, segment));
    engine.launch(id);
    engine.poll();
    engine.wait(id);
    EXPECT_EQ(engine.traffic().posted, engine.traffic().completed);
    EXPECT_EQ(engine.traffic()[comm::Purpose::gradients].value(),
              schedule::ring_all_reduce_sends(static_cast<Elements>(n), world_.size(), world_.rank()) *
                  static_cast<Elements>(sizeof(T)));
    MPI_Allreduce(MPI_IN_PLACE, theirs.data(), static_cast<int>(n), type, MPI_SUM, comm::native(world_));
    EXPECT_EQ(ours, theirs) << n << ' ' << segment << ' ' << to_text(driver);
  }

  comm::Communicator world_ = comm::duplicate(MPI_COMM_WORLD);
};

TEST_F(EngineOverMpi, EqualsMpiAllreduceForAwkwardSizesAcrossTheEagerLimits) {
  const auto p = static_cast<std::size_t>(world_.size());
  for (const std::size_t n : {std::size_t{0}, std::size_t{1}, p - 1, p, p + 1, 2 * p - 1, std::size_t{1000},
                              std::size_t{4097}, std::size_t{100003}}) {
    equals_mpi<float>(n, 16384, Driver::polling, MPI_FLOAT);
    equals_mpi<float>(n, 1024, Driver::blocking, MPI_FLOAT);
  }
  equals_mpi<double>(1001, 100, Driver::polling, MPI_DOUBLE);
  equals_mpi<std::int32_t>(1001, 100, Driver::polling, MPI_INT32_T);
}

TEST_F(EngineOverMpi, SplitsMessagesAtTheCountLimit) {
  equals_mpi<float>(100, 50, Driver::polling, MPI_FLOAT, {.pieces = {.most = 7}});
}

TEST_F(EngineOverMpi, GivesTheSameBitsOnEveryRankAndWithEveryDriver) {
  std::vector<std::vector<float>> results;
  for (const Driver driver : kDrivers) {
    std::vector<float> data(5001);
    for (std::size_t i = 0; i < data.size(); ++i)
      data[i] = 1.0F / static_cast<float>(i + 3 + 1000 * static_cast<std::size_t>(world_.rank()));
    Engine engine(transport(), {.driver = driver, .deadline = Seconds(60)});
    const OperationId id = engine.declare(spec(data, 300));
    engine.launch(id);
    engine.wait(id);
    results.push_back(data);
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
  const std::string bits(reinterpret_cast<const char*>(results[0].data()), results[0].size() * sizeof(float));
  for (const std::string& other : world_.all_gather(bits)) EXPECT_TRUE(other == bits);
}

TEST_F(EngineOverMpi, WrapsTagsOverManySmallOperations) {
  std::vector<float> a(3), b(5);
  Engine engine(transport({.most_tags = 50}), {.driver = Driver::polling, .deadline = Seconds(60)});
  const OperationId first = engine.declare(spec(a, 2)), second = engine.declare(spec(b, 2));
  const float p = static_cast<float>(world_.size());
  for (int round = 0; round < 500; ++round) {
    a.assign(3, static_cast<float>(round)), b.assign(5, 1.0F);
    engine.launch(first), engine.launch(second);
    engine.wait(first), engine.wait(second);
    ASSERT_EQ(a[0], static_cast<float>(round) * p);
    ASSERT_EQ(b[4], p);
  }
}

TEST_F(EngineOverMpi, SeesAnOperationOfAnotherSizeBeforeAnythingIsLaunched) {
  if (world_.size() == 1) GTEST_SKIP() << "one rank agrees with itself";
  std::vector<float> data(world_.rank() == 1 ? 9 : 10);
  Engine engine(transport(), {});
  engine.declare(spec(data, 5));
  try {
    require_same_operations(world_, engine);
    ADD_FAILURE() << "was accepted";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("rank 0 has 40 bytes, rank 1 has 36"));
  }
}

}  // namespace
}  // namespace annulet::collectives
