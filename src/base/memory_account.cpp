#include "annulet/base/memory_account.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <new>
#include <utility>

namespace annulet {
namespace {

thread_local MemoryAccount* current_account = nullptr;

// Of x86-64 and most of ARM; where pages are of other sizes the advice is of no use and does no harm. What streams
// through long vectors then meets a five hundredth of the entries of page tables: all-reduces of 16 and 64 MiB over
// shared memory take a fifth less. Shorter vectors would be rounded up by too much.
constexpr std::size_t kHugePage = 2 << 20, kLong = 4 * kHugePage;

std::size_t boundary_of(std::size_t bytes, std::size_t alignment) {
  return bytes >= kLong ? std::max(alignment, kHugePage) : alignment;
}

// Empty where nothing but the machine limits this process.
std::string limit_text() {
  for (const auto& [resource, name] : {std::pair{RLIMIT_DATA, "data"}, {RLIMIT_AS, "address space"}}) {
    rlimit limit{};
    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) continue;
    return fmt::format("a limit of {} on this process's {}", to_text(Bytes(static_cast<std::int64_t>(limit.rlim_cur))),
                       name);
  }
  return "the machine's memory is used up";
}

}  // namespace

MemoryScope::MemoryScope(MemoryAccount& account) : before_(std::exchange(current_account, &account)) {}
MemoryScope::~MemoryScope() { current_account = before_; }

MemoryAccount* MemoryScope::current() { return current_account; }

MemoryShare::MemoryShare(MemoryAccount& from, MemoryAccount& to, Bytes bytes)
    : from_(from), to_(to), bytes_(static_cast<std::size_t>(bytes.value())) {
  from_.remove(bytes_), to_.add(bytes_);
}

MemoryShare::~MemoryShare() { to_.remove(bytes_), from_.add(bytes_); }

void* allocate_aligned(std::size_t bytes, std::size_t alignment, MemoryAccount* account) {
  const std::size_t boundary = boundary_of(bytes, alignment);
  void* memory = ::operator new (bytes, std::align_val_t{boundary}, std::nothrow);
  if (memory == nullptr) {
    throw MemoryError({fmt::format("there is no memory for {} of {}", to_text(Bytes(static_cast<std::int64_t>(bytes))),
                                   account != nullptr ? account->name() : "data"),
                       limit_text(), "Raise the limit, or ask for less"});
  }
  // Whole pages only: the last one would take more than was asked for.
  if (bytes >= kLong) madvise(memory, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
  if (account != nullptr) account->add(bytes);
  return memory;
}

void free_aligned(void* memory, std::size_t bytes, std::size_t alignment, MemoryAccount* account) {
  ::operator delete (memory, std::align_val_t{boundary_of(bytes, alignment)});
  if (account != nullptr) account->remove(bytes);
}

}  // namespace annulet
