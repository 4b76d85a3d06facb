#include "annulet/base/memory_account.hpp"

#include <gtest/gtest.h>

#include <cstdint>

#include "annulet/base/aligned.hpp"

namespace annulet {
namespace {

TEST(MemoryAccount, CountsWhatItsBuffersHold) {
  MemoryAccount weights("weights"), rest("rest");
  {
    AlignedVector<double> named(100, weights);
    const MemoryScope scope(rest);
    AlignedVector<float> scoped(10);
    AlignedVector<double> other(3, weights);
    EXPECT_EQ(weights.held(), Bytes(824));
    EXPECT_EQ(rest.held(), Bytes(40));
  }
  EXPECT_EQ(weights.held(), Bytes(0));
  EXPECT_EQ(rest.held(), Bytes(0));
}

// Long vectors lie on huge pages; AddressSanitizer sees whether they are freed as they were allocated.
TEST(MemoryAccount, CountsLongBuffersByTheByteAndLaysThemOnHugePages) {
  MemoryAccount account("long");
  constexpr std::size_t kPage = 2 << 20;
  for (const std::size_t bytes : {4 * kPage - 1, 4 * kPage, 4 * kPage + 1}) {
    const AlignedVector<std::uint8_t> buffer(bytes, account);
    EXPECT_EQ(account.held(), Bytes(static_cast<std::int64_t>(bytes)));
    const std::size_t boundary = bytes < 4 * kPage ? 64 : kPage;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % boundary, 0U);
  }
  EXPECT_EQ(account.held(), Bytes(0));
}

TEST(MemoryAccount, GoesWithAMovedBufferAndStaysWithACopy) {
  MemoryAccount a("a"), b("b");
  AlignedVector<float> first(10, a), second(20, b);
  first = std::move(second);
  EXPECT_EQ(a.held(), Bytes(0));
  EXPECT_EQ(b.held(), Bytes(80));
  AlignedVector<float> third(5, a);
  third = first;
  EXPECT_EQ(a.held(), Bytes(80));
  EXPECT_EQ(b.held(), Bytes(80));
}

TEST(MemoryScope, EndsWithItsBlockAndNests) {
  MemoryAccount outer("outer"), inner("inner");
  EXPECT_EQ(MemoryScope::current(), nullptr);
  {
    const MemoryScope first(outer);
    {
      const MemoryScope second(inner);
      EXPECT_EQ(MemoryScope::current(), &inner);
    }
    EXPECT_EQ(MemoryScope::current(), &outer);
  }
  EXPECT_EQ(MemoryScope::current(), nullptr);
}

}  // namespace
}  // namespace annulet
