#pragma once
// Counts what aligned buffers (aligned.hpp) take, by what they are for. A buffer's allocator belongs to the account
// that was named, or to that of the thread's scope, or to none; its bytes are in the account as long as it has them. An
// account outlives its buffers.
#include <atomic>
#include <cstddef>
#include <string>

#include "annulet/base/error.hpp"
#include "annulet/base/units.hpp"

namespace annulet {

class MemoryAccount {
 public:
  // What its buffers hold: "gradients".
  explicit MemoryAccount(std::string name) : name_(std::move(name)) {}
  MemoryAccount(const MemoryAccount&) = delete;
  MemoryAccount& operator=(const MemoryAccount&) = delete;

  const std::string& name() const { return name_; }
  Bytes held() const { return Bytes(held_.load()); }

  void add(std::size_t bytes) { held_ += static_cast<std::int64_t>(bytes); }
  void remove(std::size_t bytes) { held_ -= static_cast<std::int64_t>(bytes); }

 private:
  std::string name_;
  std::atomic<std::int64_t> held_{0};  // buffers come and go in any thread
};

// While it lives, buffers that this thread makes belong to `account` unless they name one.
class MemoryScope {
 public:
  explicit MemoryScope(MemoryAccount& account);
  ~MemoryScope();
  MemoryScope(const MemoryScope&) = delete;
  MemoryScope& operator=(const MemoryScope&) = delete;

  static MemoryAccount* current();  // null without a scope

 private:
  MemoryAccount* before_;
};

// While it lives, so many bytes of one account's buffers count for another.
class MemoryShare {
 public:
  MemoryShare(MemoryAccount& from, MemoryAccount& to, Bytes bytes);
  ~MemoryShare();
  MemoryShare(const MemoryShare&) = delete;
  MemoryShare& operator=(const MemoryShare&) = delete;

 private:
  MemoryAccount &from_, &to_;
  std::size_t bytes_;
};

// There is no memory for a buffer. Whoever knows what the buffer is for may know a better hint.
class MemoryError : public RunError {
 public:
  explicit MemoryError(const Problem& problem) : RunError(problem), problem_(problem) {}
  const Problem& problem() const { return problem_; }

 private:
  Problem problem_;
};

// `bytes` on a boundary of `alignment`, counted in `account` unless that is null. Throws MemoryError saying how much
// was wanted for what, and what limits it.
void* allocate_aligned(std::size_t bytes, std::size_t alignment, MemoryAccount* account);
void free_aligned(void* memory, std::size_t bytes, std::size_t alignment, MemoryAccount* account);

}  // namespace annulet
