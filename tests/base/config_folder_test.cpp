#include "annulet/base/config_folder.hpp"

#include <gmock/gmock.h>

#include "annulet/base/error.hpp"
#include "base/temporary_folder.hpp"

namespace annulet {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

// In a folder of its own, as the working folder.
class ConfigFolder : public testing::Test {
 protected:
  ConfigFolder() : before_(std::filesystem::current_path()) {
    std::filesystem::create_directories(folder_ / "configs/machines");
    folder_.write("configs/machines/slow-card.toml", "");
    folder_.write("here.toml", "");
    std::filesystem::current_path(folder_ / "");
  }
  ~ConfigFolder() override { std::filesystem::current_path(before_); }

  test::TemporaryFolder folder_;
  std::filesystem::path before_;
};

TEST_F(ConfigFolder, FindsAFileByItsPathAndByItsName) {
  EXPECT_EQ(find_config("machines", "here.toml"), "here.toml");
  EXPECT_EQ(find_config("machines", "slow-card").filename(), "slow-card.toml");
  EXPECT_THAT(config_names("machines"), testing::Contains("slow-card"));
}

TEST_F(ConfigFolder, ListsTheNamesThereAreIfThereIsNone) {
  EXPECT_THAT([] { find_config("machines", "fast-card"); },
              ThrowsMessage<InputError>(AllOf(HasSubstr("'fast-card'"), HasSubstr("slow-card"))));
  EXPECT_THAT([] { find_config("machines", "./fast.toml"); },
              ThrowsMessage<InputError>(HasSubstr("there is no file ./fast.toml")));
}

}  // namespace
}  // namespace annulet
