#pragma once
// A vector on 64-byte boundaries (a cache line, an AVX-512 register): weights, gradients and scratch live in these.
// What they take is counted (memory_account.hpp); a vector keeps its account, also when it is assigned.
#include <cstddef>
#include <type_traits>
#include <vector>

#include "annulet/base/memory_account.hpp"

namespace annulet {

template <class T>
struct AlignedAllocator {
  using value_type = T;
  using propagate_on_container_move_assignment = std::true_type;  // with the memory goes the account
  using propagate_on_container_swap = std::true_type;
  static constexpr std::size_t kAlignment = 64;

  AlignedAllocator() : account(MemoryScope::current()) {}
  AlignedAllocator(MemoryAccount& a) : account(&a) {}
  template <class U>
  AlignedAllocator(const AlignedAllocator<U>& other) : account(other.account) {}

  T* allocate(std::size_t n) { return static_cast<T*>(allocate_aligned(n * sizeof(T), kAlignment, account)); }
  void deallocate(T* p, std::size_t n) { free_aligned(p, n * sizeof(T), kAlignment, account); }
  template <class U>
  friend bool operator==(const AlignedAllocator& a, const AlignedAllocator<U>& b) {
    return a.account == b.account;
  }

  MemoryAccount* account;
};

template <class T>
using AlignedVector = std::vector<T, AlignedAllocator<T>>;

}  // namespace annulet
