#include "annulet/base/atomic_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <random>
#include <system_error>
#include <utility>

#include "annulet/base/error.hpp"

namespace annulet {
namespace {

namespace fs = std::filesystem;

std::string reason(int code) { return std::generic_category().message(code); }

[[noreturn]] void fail_writing(const fs::path& target, int code) {
  throw RunError({fmt::format("cannot write '{}': {}", target.string(), reason(code)),
                  "nothing was changed: an older file of that name is as it was",
                  "Free some space or choose another folder"});
}

fs::path resolved(const fs::path& target) {
  std::error_code ignored;
  return fs::is_symlink(target, ignored) ? fs::weakly_canonical(target) : target;
}

void refuse_special(const fs::path& target) {
  std::error_code ignored;
  const fs::file_status status = fs::status(target, ignored);
  if (!fs::exists(status) || fs::is_regular_file(status)) return;
  throw InputError({fmt::format("cannot write '{}': it is not a regular file", target.string()),
                    "files are written beside their target and renamed, which would replace a folder or device",
                    "Name a file"});
}

// Random, since several hosts may write into one shared folder.
fs::path temporary_for(const fs::path& target) {
  fs::path name = target;
  name += fmt::format(".{:08x}.tmp", std::random_device{}());
  return name;
}

fs::path folder_of(const fs::path& target) { return target.has_parent_path() ? target.parent_path() : fs::path("."); }

}  // namespace

AtomicFile::AtomicFile(const fs::path& target) : target_(resolved(target)), temporary_(temporary_for(target_)) {
  refuse_special(target_);
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor_ < 0) {
    throw InputError({fmt::format("cannot write '{}': {}", target_.string(), reason(errno)), "",
                      "Create the folder or choose another one"});
  }
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  ANNULET_EXPECTS(descriptor_ >= 0, "nothing is written after commit()");
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_writing(target_, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

void AtomicFile::write_at(std::int64_t offset, std::span<const std::byte> bytes) {
  ANNULET_EXPECTS(descriptor_ >= 0, "nothing is written after commit()");
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(descriptor_, bytes.data(), bytes.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_writing(target_, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    offset += count;
  }
}

void AtomicFile::commit() {
  ANNULET_EXPECTS(descriptor_ >= 0, "a file is committed once");
  if (::fsync(descriptor_) != 0) fail_writing(target_, errno);
  close_temporary();
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail_writing(target_, errno);
  temporary_.clear();
  flush_folder();
}

void AtomicFile::close_temporary() {
  if (::close(std::exchange(descriptor_, -1)) != 0) fail_writing(target_, errno);  // network file systems report here
}

void AtomicFile::flush_folder() const {
  const int folder = ::open(folder_of(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;  // a folder that may be written but not read: the rename has happened all the same
  const int code = ::fsync(folder) == 0 ? 0 : errno;
  ::close(folder);
  if (code == 0 || code == EINVAL || code == ENOTSUP) return;  // file systems without folder flushes
  throw RunError({fmt::format("cannot flush the folder of '{}': {}", target_.string(), reason(code)),
                  "the file is whole but might not survive a power failure", ""});
}

void write_atomically(const fs::path& target, std::string_view text) {
  AtomicFile file(target);
  file.write(text);
  file.commit();
}

}  // namespace annulet
