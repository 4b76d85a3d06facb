#include "annulet/base/units.hpp"

#include <gmock/gmock.h>

#include "annulet/base/error.hpp"

namespace annulet {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Units, ReadsSizesAsPeopleWriteThem) {
  EXPECT_EQ(parse_bytes("4MiB"), Bytes(4 << 20));
  EXPECT_EQ(parse_bytes("64 kB"), Bytes(64000));
  EXPECT_EQ(parse_bytes("17"), Bytes(17));
  EXPECT_DOUBLE_EQ(parse_seconds("1ms").count(), 1e-3);
  EXPECT_DOUBLE_EQ(parse_seconds("300").count(), 300);
  EXPECT_DOUBLE_EQ(parse_rate("125MB/s").value(), 125e6);
  EXPECT_DOUBLE_EQ(parse_rate("1Gb/s").value(), 125e6);
  EXPECT_DOUBLE_EQ(parse_flop_rate("55 GFLOP/s").value(), 55e9);
}

TEST(Units, RefusesWhatIsNotASizeAndSaysWhatIs) {
  EXPECT_THAT([] { parse_bytes("4 parsecs"); }, ThrowsMessage<InputError>(HasSubstr("the unit 'parsecs' is unknown")));
  EXPECT_THAT([] { parse_bytes("-1"); }, ThrowsMessage<InputError>(HasSubstr("negative")));
  EXPECT_THAT([] { parse_bytes(""); }, ThrowsMessage<InputError>(HasSubstr("Write bytes as")));
  EXPECT_THAT([] { parse_bytes("1.5"); }, ThrowsMessage<InputError>(HasSubstr("whole number")));
  EXPECT_THAT([] { parse_rate("12"); }, ThrowsMessage<InputError>(HasSubstr("bandwidth")));
  EXPECT_THAT([] { parse_seconds("nan"); }, ThrowsMessage<InputError>(HasSubstr("number")));
}

TEST(Units, PrintsWithTheUnitThatFits) {
  EXPECT_EQ(to_text(Bytes(0)), "0 B");
  EXPECT_EQ(to_text(Bytes(7454760)), "7.455 MB");
  EXPECT_EQ(to_text(Seconds(0.00124)), "1.24 ms");
  EXPECT_EQ(to_text(FlopRate(128e9)), "128 GFLOP/s");
}

}  // namespace
}  // namespace annulet
