#include "annulet/measure/calibrate_network.hpp"

#include <gmock/gmock.h>

#include "annulet/base/error.hpp"
#include "collectives/in_process_ranks.hpp"

namespace annulet::measure {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

NetworkCalibrationOptions small() {
  NetworkCalibrationOptions options;
  options.largest = options.ring = Bytes(64 << 10), options.share = Seconds(0.01), options.segment = 1 << 12;
  return options;
}

std::vector<NetworkCalibration> calibrate(int world, const NetworkCalibrationOptions& options,
                                          std::optional<comm::EmulatedLink> link = std::nullopt) {
  std::vector<NetworkCalibration> results(static_cast<std::size_t>(world));
  collectives::run_ranks(world, [&](int rank, std::unique_ptr<comm::Transport> transport) {
    const TransportFactory make = [&] {
      return link ? comm::emulate(std::move(transport), *link) : std::move(transport);
    };
    results[static_cast<std::size_t>(rank)] = calibrate_network(make, options);
  });
  return results;
}

bool within(double value, double truth, double part) { return std::abs(value / truth - 1) <= part; }

// A busy machine can hold up every one of a few rounds of a pattern, so there are ever more; an error of ours would be
// in all.
TEST(NetworkCalibration, RecoversAnEmulatedLinkWithinThreePercent) {
  const comm::EmulatedLink slow{Seconds(3e-3), ByteRate(40e6)};
  NetworkCalibration calibration;
  bool close = false;
  NetworkCalibrationOptions options = small();
  for (int attempt = 0; attempt < 8 && !close; ++attempt, options.share = 2 * options.share) {
    calibration = calibrate(2, options, slow)[0];
    close = within(calibration.inside.alpha.count(), slow.latency.count(), 0.03) &&
            within(calibration.inside.beta.value(), 1 / slow.bandwidth.value(), 0.03);
  }
  EXPECT_TRUE(close) << to_text(calibration.inside) << ", median residual " << calibration.median_residual;
  EXPECT_EQ(calibration.negative, "");
  const auto share = both_ways_share(calibration.points, cost::Scope::inside);
  ASSERT_TRUE(share);
  EXPECT_GT(*share, 0.65);  // its directions do not disturb each other
}

TEST(NetworkCalibration, MeasuresRingsOfManySizesThatCountForMore) {
  NetworkCalibrationOptions options = small();
  options.ring = Bytes(8 << 20);
  std::vector<std::int64_t> rings;
  for (const NetworkPoint& point : calibrate(2, options)[0].points) {
    EXPECT_EQ(point.weight(), point.pattern == Pattern::ring ? 4 : 1);
    if (point.pattern == Pattern::ring) rings.push_back(point.bytes.value() >> 10);
  }
  EXPECT_THAT(rings, testing::ElementsAre(1, 8, 32, 64, 128, 256, 512, 2048, 8192));
}

TEST(NetworkCalibration, MeasuresLinksInsideAndBetweenNodesApart) {
  NetworkCalibrationOptions options = small();
  options.node = {0, 0, 1}, options.eager_inside = Bytes(1000), options.eager_between = Bytes(2000);
  const std::vector<NetworkCalibration> all = calibrate(3, options);
  std::set<std::pair<cost::Scope, Pattern>> seen;
  for (const NetworkPoint& point : all[0].points) seen.emplace(point.scope, point.pattern);
  EXPECT_EQ(seen.size(), 7U);  // pair patterns of both, and the ring
  EXPECT_TRUE(seen.contains({cost::Scope::between, Pattern::ring}));
  for (const NetworkCalibration& one : all) {
    EXPECT_EQ(one.inside.alpha, all[0].inside.alpha);
    EXPECT_EQ(one.between.beta, all[0].between.beta);
    EXPECT_EQ(one.between.gamma, all[0].between.gamma);
    EXPECT_EQ(one.negative, all[0].negative);
    ASSERT_EQ(one.points.size(), all[0].points.size());
    EXPECT_EQ(one.points.back().predicted, all[0].points.back().predicted);
  }
}

// Two pairs of nodes, and the ring: more ranks than many a machine has cores.
TEST(NetworkCalibration, MeasuresAllNodesAtOnce) {
  const comm::EmulatedLink slow{Seconds(1e-3), ByteRate(10e6)};
  NetworkCalibrationOptions options = small();
  options.node = {0, 1, 2, 3};
  std::vector<NetworkCalibration> all;
  bool close = false;
  for (int attempt = 0; attempt < 4 && !close; ++attempt, options.share = 2 * options.share) {
    all = calibrate(4, options, slow);
    close = within(all[0].between.alpha.count(), slow.latency.count(), 0.3) &&
            within(all[0].between.beta.value(), 1 / slow.bandwidth.value(), 0.3);
  }
  EXPECT_TRUE(close) << to_text(all[0].between);
  for (const NetworkPoint& point : all[0].points) EXPECT_EQ(point.scope, cost::Scope::between);
  EXPECT_EQ(all[3].between.alpha, all[0].between.alpha);
}

TEST(NetworkCalibration, RefusesAWorldOfOne) {
  EXPECT_THAT([] { calibrate_network([] { return nullptr; }, {}); }, ThrowsMessage<InputError>(HasSubstr("one rank")));
}

TEST(BothWaysShare, ComparesTheLargestMessages) {
  const auto point = [](Pattern pattern, int bytes, double time) {
    return NetworkPoint{pattern, cost::Scope::between, Bytes(bytes), 4, Seconds(time), Seconds(1)};
  };
  const std::vector<NetworkPoint> points{point(Pattern::stream, 64, 1), point(Pattern::both_ways, 64, 1),
                                         point(Pattern::stream, 4096, 3), point(Pattern::both_ways, 4096, 6)};
  EXPECT_EQ(both_ways_share(points, cost::Scope::between), 0.5);
  EXPECT_EQ(both_ways_share(points, cost::Scope::inside), std::nullopt);
}

}  // namespace
}  // namespace annulet::measure
