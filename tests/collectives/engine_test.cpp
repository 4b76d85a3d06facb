#include "annulet/collectives/engine.hpp"

#include <gmock/gmock.h>

#include <numeric>

#include "annulet/base/error.hpp"
#include "annulet/comm/emulated.hpp"
#include "annulet/schedule/recursive_doubling.hpp"
#include "annulet/schedule/ring.hpp"
#include "collectives/in_process_ranks.hpp"

namespace annulet::collectives {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr Driver kDrivers[] = {Driver::blocking, Driver::polling, Driver::thread};

template <class T>
OperationSpec spec(std::vector<T>& data, schedule::Plan plan, std::string name = "test") {
  return {std::move(name), comm::Purpose::gradients, sum_of<T>(), std::make_shared<schedule::Plan>(std::move(plan)),
          std::as_writable_bytes(std::span(data))};
}

schedule::Plan ring(int rank, int world, std::size_t elements, Elements segment) {
  return schedule::ring_all_reduce({rank, world, static_cast<Elements>(elements), segment, 2});
}

// Element i of rank r: small integers, whose sums are exact in float.
template <class T>
std::vector<T> input(int rank, std::size_t elements) {
  std::vector<T> values(elements);
  for (std::size_t i = 0; i < elements; ++i)
    values[i] = static_cast<T>((static_cast<std::size_t>(rank) * 7 + i * 3) % 101);
  return values;
}

template <class T>
std::vector<T> sum_over(int world, std::size_t elements) {
  std::vector<T> total(elements);
  for (int r = 0; r < world; ++r) {
    const auto values = input<T>(r, elements);
    for (std::size_t i = 0; i < elements; ++i) total[i] += values[i];
  }
  return total;
}

template <class T>
void all_reduce_is_exact(int world, std::size_t elements, Elements segment, Driver driver) {
  SCOPED_TRACE(testing::Message() << "p=" << world << " n=" << elements << " segment=" << segment << ' '
                                  << to_text(driver));
  std::vector<std::vector<T>> results(static_cast<std::size_t>(world));
  run_ranks(world, [&](int rank, std::unique_ptr<comm::Transport> transport) {
    Engine engine(std::move(transport), {.driver = driver, .deadline = Seconds(20)});
    auto data = input<T>(rank, elements);
    const OperationId id = engine.declare(spec(data, ring(rank, world, elements, segment)));
    engine.launch(id);
    engine.poll();
    engine.wait(id);
    EXPECT_EQ(engine.traffic().posted, engine.traffic().completed);
    EXPECT_EQ(engine.traffic()[comm::Purpose::gradients].value(),
              schedule::ring_all_reduce_sends(static_cast<Elements>(elements), world, rank) *
                  static_cast<Elements>(sizeof(T)));
    results[static_cast<std::size_t>(rank)] = data;
  });
  for (const auto& result : results) EXPECT_EQ(result, sum_over<T>(world, elements));
}

TEST(Engine, ReducesExactlyForAnyNumberOfRanksAndElementsWithEveryDriver) {
  for (const Driver driver : kDrivers) {
    for (const int world : {1, 2, 3, 4, 7}) {
      for (const std::size_t elements : {0U, 1U, 5U, 64U, 257U})
        all_reduce_is_exact<float>(world, elements, 16, driver);
    }
  }
  all_reduce_is_exact<float>(17, 100, 3, Driver::polling);
}

TEST(Engine, ReducesDoublesAndIntegers) {
  all_reduce_is_exact<double>(3, 100, 7, Driver::polling);
  all_reduce_is_exact<std::int32_t>(3, 100, 7, Driver::polling);
}

// Values whose sum depends on the order, so that equal bits mean equal order.
TEST(Engine, GivesTheSameBitsOnAllRanksAndWithEveryDriver) {
  const int world = 5;
  const std::size_t elements = 1003;
  std::vector<std::vector<float>> results;
  std::mutex mutex;
  for (const Driver driver : kDrivers) {
    run_ranks(world, [&](int rank, std::unique_ptr<comm::Transport> transport) {
      Engine engine(std::move(transport), {.driver = driver, .deadline = Seconds(20)});
      std::vector<float> data(elements);
      for (std::size_t i = 0; i < elements; ++i)
        data[i] = 1.0F / static_cast<float>(1 + rank * 31 + static_cast<int>(i));
      const OperationId id = engine.declare(spec(data, ring(rank, world, elements, 50)));
      engine.launch(id);
      engine.wait(id);
      const std::lock_guard lock(mutex);
      results.push_back(data);
    });
  }
  for (const auto& result : results) EXPECT_EQ(result, results.front());
}

// More launches than may be active, tags that wrap, repeated runs of the same operations.
TEST(Engine, KeepsManyOperationsApartThoughTagsWrap) {
  for (const Driver driver : kDrivers) {
    run_ranks(
        3,
        [&](int rank, std::unique_ptr<comm::Transport> transport) {
          Engine engine(std::move(transport), {.driver = driver, .deadline = Seconds(20), .active = 2});
          std::vector<std::vector<double>> data(9, std::vector<double>(11));
          std::vector<OperationId> ids;
          for (auto& vector : data) ids.push_back(engine.declare(spec(vector, ring(rank, 3, vector.size(), 2))));
          for (int round = 0; round < 30; ++round) {
            for (std::size_t i = 0; i < data.size(); ++i) data[i].assign(11, rank + static_cast<double>(i) + round);
            for (const OperationId id : ids) engine.launch(id);
            for (const OperationId id : ids) engine.wait(id);
            for (std::size_t i = 0; i < data.size(); ++i) {
              ASSERT_EQ(data[i], std::vector<double>(11, 3.0 + 3 * (static_cast<double>(i) + round)));
            }
          }
          EXPECT_EQ(engine.traffic().posted, engine.traffic().completed);
        },
        /*tag_count=*/16);
  }
}

TEST(Engine, AverageOfRanksDividesByTheNumberOfRanksWhateverTheLength) {
  for (const std::size_t elements : {1U, 4U, 7U}) {
    run_ranks(4, [&](int rank, std::unique_ptr<comm::Transport> transport) {
      Engine engine(std::move(transport), {});
      std::vector<float> data(elements, static_cast<float>(rank) / 4.0F);
      const OperationId id = engine.declare(spec(data, ring(rank, 4, elements, 2)));
      engine.launch(id);
      engine.wait(id);
      EXPECT_EQ(data, std::vector<float>(elements, 1.5F));
    });
  }
}

TEST(Engine, NamesTheOperationTheStepsAndTheRankItWaitsForAtTheDeadline) {
  for (const Driver driver : kDrivers) {
    EXPECT_THAT(
        [&] {
          run_ranks(2, [&](int rank, std::unique_ptr<comm::Transport> transport) {
            if (rank == 1) return;  // never comes
            Engine engine(std::move(transport), {.driver = driver, .deadline = Seconds(0.05)});
            std::vector<float> data(8);
            const OperationId id = engine.declare(spec(data, ring(0, 2, 8, 4), "gradient bucket 3"));
            engine.launch(id);
            engine.wait(id);
          });
        },
        ThrowsMessage<RunError>(
            AllOf(HasSubstr("gradient bucket 3"), HasSubstr("0 of 5 steps done"), HasSubstr("from rank 1"))));
  }
}

TEST(Engine, AnEmulatedLinkDelaysButDoesNotChangeTheResult) {
  for (const Driver driver : kDrivers) {
    const Instant begin = Clock::now();
    run_ranks(2, [&](int rank, std::unique_ptr<comm::Transport> transport) {
      const comm::EmulatedLink link{Seconds(2e-3), ByteRate(1e6)};
      Engine engine(comm::emulate(std::move(transport), link), {.driver = driver, .deadline = Seconds(20)});
      auto data = input<float>(rank, 1000);
      const OperationId id = engine.declare(spec(data, ring(rank, 2, data.size(), 500)));
      engine.launch(id);
      engine.wait(id);
      EXPECT_EQ(data, sum_over<float>(2, 1000));
      EXPECT_EQ(engine.traffic()[comm::Purpose::gradients], Bytes(4000));
      EXPECT_EQ(engine.traffic().posted, engine.traffic().completed);
    });
    EXPECT_GE(Seconds(Clock::now() - begin).count(), 2 * (2e-3 + 2e-3));  // two steps of 2000 bytes
  }
}

// A record with its own way of becoming one, as the control all-reduce of a step has.
struct Record {
  double sum;
  int most;
};

void merge(std::byte* to, const std::byte* from, Elements n) {
  for (Elements i = 0; i < n; ++i) {
    Record& a = reinterpret_cast<Record*>(to)[i];
    const Record& b = reinterpret_cast<const Record*>(from)[i];
    a.sum += b.sum, a.most = std::max(a.most, b.most);
  }
}

TEST(Engine, RunsAnyElementTypeWithAnyReduction) {
  run_ranks(6, [&](int rank, std::unique_ptr<comm::Transport> transport) {
    Engine engine(std::move(transport), {});
    std::vector<Record> data{{0.5 * rank, rank}};
    const OperationId id =
        engine.declare({"control",
                        comm::Purpose::control,
                        {"record", sizeof(Record), merge},
                        std::make_shared<schedule::Plan>(schedule::recursive_doubling_all_reduce(rank, 6, 1)),
                        std::as_writable_bytes(std::span(data))});
    engine.launch(id);
    engine.wait(id);
    EXPECT_EQ(data[0].sum, 7.5);
    EXPECT_EQ(data[0].most, 5);
  });
}

TEST(Engine, RefusesToLaunchWhatIsRunningOrToDeclareAfterALaunch) {
  comm::InProcessNetwork network(2);
  Engine engine(network.connect(0), {});
  std::vector<float> data(4);
  const OperationId id = engine.declare(spec(data, ring(0, 2, 4, 4)));
  engine.launch(id);
  EXPECT_THROW(engine.launch(id), ContractError);
  EXPECT_THROW(engine.declare(spec(data, ring(0, 2, 4, 4))), ContractError);
}

}  // namespace
}  // namespace annulet::collectives
