#pragma once
// A file that is there whole or not at all. Bytes go to a temporary in the same folder; commit() flushes it to the
// disk, renames it over the target and flushes the folder. Whatever fails before the rename (disk full, a kill), an
// older file of that name stays as it was; the temporary is removed unless the process is killed.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

namespace annulet {

class AtomicFile {
 public:
  // Creates the temporary. Throws InputError where the folder is missing or read-only, or where `target` is something
  // that must not be replaced (a folder, a device). A symbolic link stays: the file it names is replaced.
  explicit AtomicFile(const std::filesystem::path& target);
  ~AtomicFile();  // without commit(): removes the temporary
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Appends. Throws RunError with the system's reason.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }

  // At `offset` bytes from the beginning, wherever that is; where write() appends stays as it is.
  void write_at(std::int64_t offset, std::span<const std::byte> bytes);

  // Makes the file appear; nothing may be written afterwards. Throws RunError with the system's reason.
  void commit();

 private:
  void close_temporary();
  void flush_folder() const;

  std::filesystem::path target_, temporary_;
  int descriptor_ = -1;
};

// The whole file in one call.
void write_atomically(const std::filesystem::path& target, std::string_view text);

}  // namespace annulet
