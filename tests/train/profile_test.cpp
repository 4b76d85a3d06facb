#include "annulet/train/profile.hpp"

#include <gmock/gmock.h>

#include "annulet/base/error.hpp"
#include "annulet/train/trainer.hpp"
#include "collectives/in_process_ranks.hpp"
#include "train/golden.hpp"

namespace annulet::train {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Profile, IsOfTheStepsAfterTheFirstFive) {
  const data::Dataset data = golden::dataset();
  collectives::run_ranks(1, [&](int, std::unique_ptr<comm::Transport> transport) {
    collectives::Engine engine(std::move(transport), {});
    Trainer<float> trainer(golden::config(), engine, data, nullptr);
    ProfileRecorder recorder(trainer.layout().tensors().size(), Bytes(4) * trainer.layout().size(), 8);
    trainer.record(recorder.instants());
    for (int step = 0; step < 8; ++step) {
      const StepRecord record = trainer.step();
      recorder.add(record, {trainer.step_began(), trainer.backward_began(), trainer.backward_ended()});
    }
    EXPECT_EQ(recorder.steps(), 3);
    const cost::StepProfile profile = recorder.result();
    ASSERT_EQ(profile.ready.size(), trainer.layout().tensors().size());
    Seconds before = profile.backward_begins;
    EXPECT_GT(before, Seconds(0));
    for (const Seconds ready : profile.ready) EXPECT_GE(ready, before), before = ready;
    EXPECT_GE(profile.backward_ends, profile.ready.back());
    EXPECT_GT(profile.norm, Seconds(0));
    EXPECT_GT(profile.optimizer, Seconds(0));
    EXPECT_GT(profile.check.value(), 0);
    EXPECT_GT(profile.moving.value(), 0);
    EXPECT_GT(profile.adding.value(), 0);
    EXPECT_GT(profile.narrowing.value(), 0);
    EXPECT_GT(profile.choosing.value(), 0);
    EXPECT_GT(profile.spreading.value(), 0);
  });
}

TEST(Profile, ServesOnlyRunsThatComputeTheSame) {
  const nn::Layout layout({{"a", {3, 2}, {}}, {"b", {3}, {}}}), other({{"a", {3, 2}, {}}, {"c", {3}, {}}});
  const Config config;
  const Profile profile{workload(config, "mlp", layout, 64), {}, 20};
  const auto refused = [&](const Workload& wanted, const std::string& what) {
    EXPECT_THAT([&] { require_fitting(profile, wanted); }, ThrowsMessage<InputError>(HasSubstr(what)));
  };
  EXPECT_NO_THROW(require_fitting(profile, workload(config, "mlp", layout, 64)));
  refused(workload(config, "mlp", layout, 32), "samples per rank 64, this run has 32");
  refused(workload(config, "gpt", layout, 64), "the model mlp, this run has gpt");
  refused(workload(config, "mlp", other, 64), "tensor b, this run has c");
  Config doubles;
  doubles.type = "double";
  refused(workload(doubles, "mlp", layout, 64), "type float, this run has double");
}

TEST(Profile, DoesNotKnowEarlierMicroBatches) {
  Profile profile;
  profile.workload.accumulate = 2;
  Config config;
  config.zero = 1;
  EXPECT_EQ(profiled_step(config, profile, Bytes(4)).stage, 1);
  config.zero = 2;
  EXPECT_THAT([&] { profiled_step(config, profile, Bytes(4)); },
              ThrowsMessage<InputError>(HasSubstr("ZeRO stage 2 with 2 micro-batches cannot be predicted")));
}

}  // namespace
}  // namespace annulet::train
