#include "annulet/base/atomic_file.hpp"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <csignal>

#include "annulet/base/error.hpp"
#include "base/temporary_folder.hpp"

namespace annulet {
namespace {

using test::content_of;
using test::TemporaryFolder;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// While it lives, a write beyond `bytes` fails as on a full disk (EFBIG), which needs no mount and no root.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  void (*handler_)(int);
  rlimit before_{};
};

TEST(AtomicFile, AppearsWholeAtCommitAndNotBefore) {
  const TemporaryFolder folder;
  AtomicFile file(folder / "state");
  file.write("one ");
  file.write("two");
  EXPECT_FALSE(std::filesystem::exists(folder / "state"));
  file.commit();
  EXPECT_EQ(content_of(folder / "state"), "one two");
  EXPECT_THAT(folder.names(), ElementsAre("state"));
  EXPECT_THROW(file.write("three"), ContractError);
}

TEST(AtomicFile, ReplacesAnOlderFile) {
  const TemporaryFolder folder;
  folder.write("state", "old and longer");
  write_atomically(folder / "state", "new");
  EXPECT_EQ(content_of(folder / "state"), "new");
}

TEST(AtomicFile, LeavesNothingWithoutCommit) {
  const TemporaryFolder folder;
  folder.write("state", "old");
  { AtomicFile(folder / "state").write("half"); }
  EXPECT_EQ(content_of(folder / "state"), "old");
  EXPECT_THAT(folder.names(), ElementsAre("state"));
}

TEST(AtomicFile, KeepsTheOlderFileWhenTheDiskIsFull) {
  const TemporaryFolder folder;
  folder.write("state", "old");
  {
    const FileSizeLimit limit(4096);
    EXPECT_THAT([&] { write_atomically(folder / "state", std::string(10000, 'x')); },
                ThrowsMessage<RunError>(AllOf(HasSubstr("state': File too large"), HasSubstr("older file"))));
  }
  EXPECT_EQ(content_of(folder / "state"), "old");
  EXPECT_THAT(folder.names(), ElementsAre("state"));
}

TEST(AtomicFile, RefusesAMissingFolder) {
  const TemporaryFolder folder;
  EXPECT_THAT([&] { write_atomically(folder / "missing/state", "new"); },
              ThrowsMessage<InputError>(HasSubstr("missing/state': No such file or directory")));
}

TEST(AtomicFile, RefusesToReplaceDevicesAndFolders) {
  const TemporaryFolder folder;
  EXPECT_THAT([&] { write_atomically("/dev/full", "new"); },
              ThrowsMessage<InputError>(HasSubstr("not a regular file")));
  EXPECT_THAT([&] { write_atomically(folder / "", "new"); },
              ThrowsMessage<InputError>(HasSubstr("not a regular file")));
}

TEST(AtomicFile, WritesThroughASymbolicLink) {
  const TemporaryFolder folder;
  folder.write("state-7", "old");
  std::filesystem::create_symlink("state-7", folder / "latest");
  write_atomically(folder / "latest", "new");
  EXPECT_EQ(content_of(folder / "state-7"), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "latest"));
}

}  // namespace
}  // namespace annulet
