#include <gtest/gtest.h>

#include "annulet/comm/emulated.hpp"
#include "annulet/comm/mpi.hpp"
#include "annulet/comm/mpi_transport.hpp"
#include "annulet/measure/bench.hpp"
#include "annulet/measure/calibrate.hpp"
#include "annulet/measure/calibrate_network.hpp"
#include "annulet/measure/clock_offset.hpp"
#include "annulet/measure/cores.hpp"
#include "support/agree.hpp"

namespace annulet::measure {
namespace {

TransportFactory real(const comm::Communicator& world) {
  return [&world] { return comm::make_mpi_transport(world); };
}

TEST(QuickCalibrationOverMpi, GivesEveryRankTheSameLink) {
  const comm::Communicator world = comm::duplicate(MPI_COMM_WORLD);
  CalibrationOptions options;
  options.largest = Bytes(1 << 20), options.budget = Seconds(0.1);
  const Calibration calibration = quick_calibration(real(world), options);
  const std::vector<double> mine{calibration.link.alpha.count(), calibration.link.beta.value(),
                                 calibration.link.gamma.value(), calibration.worst_residual, calibration.took.count()};
  const std::vector<double> all = world.all_gather(mine);
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], mine[i % mine.size()]);
  EXPECT_GE(calibration.points.size(), world.size() > 1 ? 2U : 0U);
}

// Emulation only ever delays, and so does a busy machine: the points are strict below, the rest is loose.
TEST(QuickCalibrationOverMpi, RecoversAnEmulatedLink) {
  const comm::Communicator world = comm::duplicate(MPI_COMM_WORLD);
  if (world.size() == 1 || world.size() > 4) GTEST_SKIP() << "needs a few ranks that have most of a core each";
  const comm::EmulatedLink slow{Seconds(20e-3), ByteRate(2e6)};
  const cost::Link least{slow.latency, Seconds(0), cost::SecondsPerByte(1 / slow.bandwidth.value()), {}, ""};
  CalibrationOptions options;
  options.budget = Seconds(1.5);
  const Calibration calibration =
      quick_calibration([&] { return comm::emulate(comm::make_mpi_transport(world), slow); }, options);
  for (const cost::RingPoint& point : calibration.points) {
    EXPECT_GE(point.time, 0.999 * ring_point_time(point, least));
  }
  EXPECT_TRUE(calibration.link.alpha >= 0.7 * slow.latency && calibration.link.alpha <= 1.5 * slow.latency)
      << to_text(calibration.link);
  const double slowness = calibration.link.beta.value() / least.beta.value();
  EXPECT_TRUE(slowness >= 0.7 && slowness <= 1.5) << to_text(calibration.link);
}

TEST(CoresOverMpi, AreThoseOfOneNode) {
  const comm::Communicator world = comm::duplicate(MPI_COMM_WORLD);
  const Cores cores = find_cores(world);
  EXPECT_EQ(cores.ranks_on_node, world.size());
  EXPECT_EQ(cores.distinct_total, cores.distinct_on_node);
  EXPECT_EQ(cores.in_use_total, std::min(cores.distinct_on_node, world.size()));
  EXPECT_LE(cores.in_mask, cores.distinct_on_node);
}

TEST(ClockOffsetOverMpi, IsSmallOnOneHost) {
  const comm::Communicator world = comm::duplicate(MPI_COMM_WORLD);
  ClockOffset offset;
  if (world.size() > 1) offset = clock_offset(real(world));
  EXPECT_LE(std::abs(offset.ahead.count()), std::max(1e-3, offset.uncertainty.count()));
}

std::vector<Contender> everyone() {
  std::vector<Contender> all{{Contender::Kind::mpi}, {Contender::Kind::automatic}};
  for (const schedule::Collective collective : schedule::collectives()) {
    for (const schedule::Algorithm algorithm : algorithms_of(collective)) {
      const Contender contender{Contender::Kind::algorithm, algorithm};
      if (std::ranges::find(all, contender) == all.end()) all.push_back(contender);
    }
  }
  return all;
}

// Segments and slots small, so that plans have many messages; with a root that is not the first.
BenchOptions bench_options(const comm::Communicator& world) {
  BenchOptions options;
  const auto collectives = schedule::collectives();
  options.collectives.assign(collectives.begin(), collectives.end());
  options.contenders = everyone();
  options.smallest = Bytes(8), options.largest = Bytes(20'000), options.segment = Bytes(1000);
  options.root = world.size() / 2, options.per_size = Seconds(0);
  options.known = cost::assumed_network({});
  return options;
}

void expect_right(const std::vector<BenchRow>& rows) {
  for (const BenchRow& row : rows) {
    SCOPED_TRACE(testing::Message() << to_text(row.type) << ' ' << to_text(row.collective) << " by "
                                    << to_text(row.contender) << ' ' << row.bytes.value());
    EXPECT_EQ(row.wrong, 0);
    EXPECT_TRUE(row.bytes_agree());
    EXPECT_EQ(row.wire.has_value(), row.contender.is_ours());
    EXPECT_EQ(row.execution.has_value(), row.contender.is_ours());
    EXPECT_LE(row.p50, row.p99);
  }
}

// Sizes below, at and above one element a rank.
TEST(BenchOverMpi, RunsEveryAlgorithmRightInEveryElementAndSendsWhatIsPlanned) {
  const comm::Communicator world = comm::duplicate(MPI_COMM_WORLD);
  const std::vector<BenchRow> rows = run_bench(world, real(world), bench_options(world));
  EXPECT_EQ(rows.size(), 12U * (17 + 2 * 5));
  expect_right(rows);
  for (const BenchRow& row : rows) {
    if (row.collective != schedule::Collective::all_reduce) continue;
    EXPECT_NEAR(row.busbw / row.algbw, 2.0 * (world.size() - 1) / world.size(), 1e-12);
  }
}

TEST(BenchOverMpi, KnowsTheResultOfEveryTypeAndReduction) {
  const comm::Communicator world = comm::duplicate(MPI_COMM_WORLD);
  for (const NumberType type : {NumberType::float32, NumberType::float64, NumberType::int32, NumberType::bfloat16}) {
    for (const Reduction reduction : {Reduction::sum, Reduction::average, Reduction::maximum}) {
      if (type == NumberType::int32 && reduction == Reduction::average) continue;
      BenchOptions options = bench_options(world);
      options.type = type, options.reduction = reduction;
      options.smallest = options.largest = Bytes(4008);
      if (type == NumberType::bfloat16 || reduction == Reduction::average)
        std::erase(options.contenders, Contender{Contender::Kind::mpi});
      expect_right(run_bench(world, real(world), options));
    }
  }
}

TEST(NetworkCalibrationOverMpi, RecoversAnEmulatedLink) {
  const comm::Communicator world = comm::duplicate(MPI_COMM_WORLD);
  if (world.size() == 1 || world.size() > 3) return;  // more ranks than cores by far: nobody comes in time
  const comm::EmulatedLink slow{Seconds(3e-3), ByteRate(40e6)};
  NetworkCalibrationOptions options;
  options.largest = options.ring = Bytes(64 << 10), options.share = Seconds(0.01);
  NetworkCalibration calibration;
  bool close = false;
  // A busy machine may hold up every one of a few rounds, so there are ever more.
  for (int attempt = 0; attempt < 8 && !close; ++attempt, options.share = 2 * options.share) {
    calibration = calibrate_network(transport_over(world, slow), options);
    close = std::abs(calibration.inside.alpha / slow.latency - 1) <= 0.05 &&
            std::abs(calibration.inside.beta.value() * slow.bandwidth.value() - 1) <= 0.05;
    for (const NetworkPoint& point : calibration.points) {
      const bool there_and_back = point.pattern == Pattern::ping_pong;
      const double ways = there_and_back ? 2.0 * point.messages : 1;
      const Seconds least = ways * (slow.latency + point.bytes / slow.bandwidth);
      if (point.pattern == Pattern::ring) continue;
      EXPECT_GE(point.measured, 0.999 * least) << to_text(point.pattern);
    }
  }
  EXPECT_TRUE(close) << to_text(calibration.inside);
}

}  // namespace
}  // namespace annulet::measure
