#include <gmock/gmock.h>

#include "annulet/base/aligned.hpp"

namespace annulet {
namespace {

TEST(MemoryAccount, SaysForWhatThereIsNoMemory) {
  MemoryAccount weights("weights");
  EXPECT_THAT([&] { AlignedVector<char> huge(std::size_t{1} << 60, weights); },
              testing::ThrowsMessage<MemoryError>(testing::HasSubstr(" of weights (")));
  EXPECT_EQ(weights.held(), Bytes(0));
}

}  // namespace
}  // namespace annulet
