#include "annulet/collectives/driver.hpp"

#include <gmock/gmock.h>

#include "annulet/base/error.hpp"

namespace annulet::collectives {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Driver, AutoTakesAThreadOnlyWhereACoreIsFree) {
  EXPECT_EQ(choose_driver("auto", {8, 4, 4}, true).driver, Driver::thread);
  EXPECT_EQ(choose_driver("auto", {2, 2, 2}, true).driver, Driver::polling);
  EXPECT_EQ(choose_driver("auto", {1, 1, 2}, true).driver, Driver::polling);
  EXPECT_EQ(choose_driver("auto", {8, 1, 1}, true).driver, Driver::polling);  // nobody to communicate with
  EXPECT_EQ(choose_driver("thread", {8, 1, 2}, false).driver, Driver::polling);
  EXPECT_THAT(choose_driver("thread", {8, 1, 2}, false).reason, HasSubstr("only its main thread"));
  EXPECT_THAT([] { choose_driver("fast", {}, true); },
              ThrowsMessage<InputError>(HasSubstr("blocking, polling, thread or auto")));
}

}  // namespace
}  // namespace annulet::collectives
