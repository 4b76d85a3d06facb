#include "annulet/report/profile_file.hpp"

#include <gmock/gmock.h>

#include "annulet/base/error.hpp"
#include "base/temporary_folder.hpp"

namespace annulet::report {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

train::Profile example() {
  train::Profile profile;
  profile.workload = {"mlp 2-1", "float", "sgd", 64, 2, {"layers.0.weight", "layers.0.bias"}, {2, 1}, {0, 1}, 1};
  profile.step.backward_begins = Seconds(1.25e-3), profile.step.backward_ends = Seconds(3e-3);
  profile.step.ready = {Seconds(2e-3), Seconds(2.5e-3)};
  profile.step.norm = Seconds(1e-4), profile.step.optimizer = Seconds(1.0 / 3);
  profile.step.check = cost::SecondsPerByte(1e-11), profile.step.moving = cost::SecondsPerByte(2e-10);
  profile.step.adding = cost::SecondsPerByte(3e-11), profile.step.pulse = Seconds(2e-4);
  profile.step.narrowing = cost::SecondsPerByte(4e-10), profile.step.choosing = cost::SecondsPerByte(5e-10);
  profile.step.spreading = cost::SecondsPerByte(6e-10);
  profile.steps = 20;
  return profile;
}

TEST(ProfileFile, IsReadBackToTheLastDigit) {
  const test::TemporaryFolder folder;
  folder.write("profile.json", profile_json(example()));
  const train::Profile read = read_profile(folder / "profile.json");
  EXPECT_EQ(read.workload, example().workload);
  EXPECT_EQ(profile_json(read), profile_json(example()));
  EXPECT_EQ(read.step.optimizer, Seconds(1.0 / 3));
  EXPECT_EQ(read.step.pulse, Seconds(2e-4));
  EXPECT_EQ(read.step.choosing.value(), 5e-10);
}

TEST(ProfileFile, SaysWhatIsWrong) {
  const test::TemporaryFolder folder;
  const auto refused = [&](const std::string& text, const std::string& what) {
    folder.write("p.json", text);
    EXPECT_THAT([&] { read_profile(folder / "p.json"); },
                ThrowsMessage<InputError>(
                    AllOf(HasSubstr("p.json is not a profile"), HasSubstr(what), HasSubstr("--record-profile"))));
  };
  const auto changed = [](const std::string& from, const std::string& to) {
    std::string text = profile_json(example());
    return text.replace(text.find(from), from.size(), to);
  };
  refused("", "not a JSON object");
  refused("[1]", "not a JSON object");
  refused("{}", "'model' is missing");
  refused(changed("\"norm_seconds\": 0.0001", "\"norm_seconds\": -1"), "'norm_seconds' is -1");
  refused(changed("\"norm_seconds\": 0.0001", "\"norm_seconds\": \"x\""), "'norm_seconds' is \"x\"");
  refused(changed("\"elements\": 2", "\"elements\": -2"), "fewer than no elements");
  refused(changed("\"layer\": 1", "\"layer\": 2"), "its layers are not counted up");
  refused(changed("\"steps\": 20", "\"steps\": 0"), "no step was sampled");
  EXPECT_THAT([&] { read_profile(folder / "none.json"); }, ThrowsMessage<InputError>(HasSubstr("No such file")));
}

}  // namespace
}  // namespace annulet::report
