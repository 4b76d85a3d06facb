#include "annulet/train/session.hpp"

#include <gmock/gmock.h>

#include "annulet/train/agree.hpp"
#include "base/temporary_folder.hpp"

namespace annulet::train {
namespace {

struct Recorder final : Observer {
  void begin(const RunInfo& run) override { info = run; }
  void step(const StepRecord&) override { ++steps; }
  void evaluated(long step, const Evaluation&) override { evaluations.push_back(step); }
  void end(const Summary&, const std::vector<BucketRecord>& all, const std::vector<StepRecord>&) override {
    buckets = all;
  }

  RunInfo info;
  long steps = 0;
  std::vector<long> evaluations;
  std::vector<BucketRecord> buckets;
};

Config small() {
  Config config;
  config.widths = {30, 40, 4};
  config.data = "synthetic", config.samples = 64, config.test_samples = 33;
  config.batch = 16, config.steps = 10;
  config.bucket = config.first_bucket = Bytes(3000);
  return config;
}

class SessionOverMpi : public testing::Test {
 protected:
  Summary run(const Config& config, Recorder& recorder, const SessionOptions& options = {}) {
    return run_session(config, environment_, options, recorder);
  }

  comm::Environment environment_;
  const cost::Link link_{Seconds(1e-5), Seconds(0), cost::SecondsPerByte(1e-9), cost::SecondsPerByte(0), "test"};
  const cost::Machine machine_{link_, link_};
};

TEST_F(SessionOverMpi, AccountsForEveryByteAndTellsRankZero) {
  Recorder recorder;
  const Summary summary = run(small(), recorder);
  const int p = environment_.world().size();
  const std::int64_t parameters = 30 * 40 + 40 + 40 * 4 + 4;
  EXPECT_EQ(summary.parameters, parameters);
  EXPECT_EQ(summary.planned_wire_per_step.value(), 2 * (p - 1) * parameters * 4);
  EXPECT_EQ(summary.wire_per_step, summary.planned_wire_per_step);
  ASSERT_EQ(summary.wire_by_rank.size(), static_cast<std::size_t>(p));
  ASSERT_TRUE(summary.evaluation);
  EXPECT_EQ(summary.evaluation->samples, 33);
  ASSERT_TRUE(summary.median_step);
  const bool first = environment_.world().rank() == 0;
  EXPECT_EQ(recorder.steps, first ? 10 : 0);
  EXPECT_EQ(recorder.evaluations, first ? (std::vector<long>{3, 7, 9}) : std::vector<long>{});
  EXPECT_EQ(recorder.buckets.size(), first ? 10 * recorder.info.buckets.size() : 0);
  for (const BucketRecord& bucket : recorder.buckets) {
    EXPECT_LE(bucket.ready, bucket.start);
    EXPECT_LE(bucket.start, bucket.end);
    EXPECT_NEAR((bucket.transfer + bucket.waiting).count(), bucket.measured.count(), 1e-12);
    EXPECT_EQ(bucket.predicted.count() > 0, p > 1);
  }
  EXPECT_EQ(summary.all_reduce_measured.has_value(), first && p > 1);
}

TEST_F(SessionOverMpi, PredictsOnTheGivenLinkInsteadOfMeasuring) {
  Recorder recorder;
  const Summary summary = run(small(), recorder, {.weights = {}, .machine = machine_});
  EXPECT_EQ(summary.network.inside.source, "test");
  EXPECT_FALSE(recorder.info.calibration_residual);
}

TEST_F(SessionOverMpi, ResolvesAnOpenBucketCapFromTheMachineFileAlikeOnAllRanks) {
  Config config = small();
  config.bucket.reset();
  Recorder recorder;
  const Summary summary = run(config, recorder, {.weights = {}, .machine = machine_});
  ASSERT_EQ(summary.bucket_cap.has_value(), environment_.world().size() > 1);
  if (!summary.bucket_cap) return;
  EXPECT_EQ(summary.bucket_cap->cap, Bytes(64 << 10));  // the whole model
  EXPECT_EQ(summary.bucket_bytes, summary.bucket_cap->cap);
  EXPECT_THAT(summary.bucket_cap->basis, testing::HasSubstr("the machine file"));
  if (environment_.world().rank() != 0) return;
  EXPECT_THAT(recorder.info.config_toml, testing::HasSubstr("\nbucket = \"65536B\"\nfirst-bucket = \"3000B\""));
}

TEST_F(SessionOverMpi, ZeroStepsEvaluateAndWriteTheInitialWeights) {
  const annulet::test::TemporaryFolder folder;
  Config config = small();
  config.steps = 0;
  Recorder recorder;
  const auto file = folder / "weights.safetensors";
  const Summary summary = run(config, recorder, {.weights = file, .machine = machine_});
  EXPECT_TRUE(summary.evaluation);
  EXPECT_FALSE(summary.median_step);
  EXPECT_EQ(std::filesystem::exists(file), environment_.world().rank() == 0);
}

TEST_F(SessionOverMpi, RefusesBadInputOnAllRanksTogether) {
  Config config;
  config.data = "idx", config.images = "/nowhere/images", config.labels = "/nowhere/labels";
  Recorder recorder;
  EXPECT_THAT([&] { run(config, recorder); }, testing::ThrowsMessage<AgreedError>(testing::HasSubstr("/nowhere/")));
  EXPECT_EQ(recorder.steps, 0);
}

// The files of one rank differ: noticed before the first step.
TEST_F(SessionOverMpi, AgreementNamesTheRankThatFailed) {
  const comm::Communicator& world = environment_.world();
  if (world.size() == 1) GTEST_SKIP() << "one rank agrees with itself";
  EXPECT_THAT(
      [&] {
        agree_on(world, [&] {
          if (world.rank() == 1) throw std::runtime_error("disk gone");
        });
      },
      testing::ThrowsMessage<AgreedError>(testing::HasSubstr("rank 1: disk gone")));
  EXPECT_THAT([&] { require_equal(world, world.rank() == 1 ? 1 : 0, {"data differ"}); },
              testing::ThrowsMessage<AgreedError>(testing::HasSubstr("rank 1 differs from rank 0")));
}

}  // namespace
}  // namespace annulet::train
