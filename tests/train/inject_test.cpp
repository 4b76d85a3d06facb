#include "annulet/train/inject.hpp"

#include <gmock/gmock.h>

#include "annulet/base/error.hpp"

namespace annulet::train {
namespace {

TEST(Injection, IsReadAsPeopleWriteIt) {
  const Injection injection = parse_injection("nan:rank=2,step=30");
  EXPECT_EQ(injection.kind, Injection::Kind::nan);
  EXPECT_EQ(injection.rank, 2);
  EXPECT_EQ(injection.step, 30);
  EXPECT_EQ(parse_injection("").kind, Injection::Kind::none);
  EXPECT_THROW(parse_injection("explode:rank=0,step=0"), InputError);
  EXPECT_THROW(parse_injection("nan:rank=1"), InputError);
  EXPECT_THROW(parse_injection("nan:rank=1,step=3x"), InputError);
  EXPECT_THROW(parse_injection("nan"), InputError);
}

TEST(Injection, StrikesAllRanksWhereAskedTo) {
  const Injection all = parse_injection("nan:rank=all,step=3");
  for (int rank = 0; rank < 5; ++rank) EXPECT_TRUE(inject(all, rank, 3)) << rank;
  EXPECT_FALSE(inject(all, 0, 2));
}

TEST(Injection, StrikesOneRankInOneStep) {
  const Injection nan = parse_injection("nan:rank=1,step=3");
  EXPECT_FALSE(inject(nan, 0, 3));
  EXPECT_FALSE(inject(nan, 1, 2));
  EXPECT_TRUE(inject(nan, 1, 3));
  EXPECT_FALSE(inject(nan, 1, 4));
  EXPECT_THROW(inject(parse_injection("throw:rank=0,step=0"), 0, 0), std::runtime_error);
}

TEST(Injection, FlipsABitOnOneRankAfterOneStep) {
  const Injection injection = parse_injection("flip:rank=2,step=7");
  EXPECT_TRUE(flips(injection, 2, 7));
  EXPECT_FALSE(flips(injection, 2, 8));
  EXPECT_FALSE(flips(injection, 1, 7));
  EXPECT_FALSE(inject(injection, 2, 7));
  EXPECT_FALSE(flips(parse_injection("nan:rank=2,step=7"), 2, 7));
  for (int rank = 0; rank < 3; ++rank) EXPECT_TRUE(flips(parse_injection("flip:rank=all,step=7"), rank, 7)) << rank;
}

}  // namespace
}  // namespace annulet::train
