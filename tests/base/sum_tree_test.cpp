#include "annulet/base/sum_tree.hpp"

#include <gtest/gtest.h>

namespace annulet {
namespace {

TEST(SumTree, HalvesAtTheLargestPowerOfTwo) {
  EXPECT_EQ(first_half(2), 1);
  EXPECT_EQ(first_half(3), 2);
  EXPECT_EQ(first_half(8), 4);
  EXPECT_EQ(first_half(13), 8);
  EXPECT_THROW(first_half(1), ContractError);
}

}  // namespace
}  // namespace annulet
