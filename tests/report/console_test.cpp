#include "annulet/report/console.hpp"

#include <gmock/gmock.h>

#include <thread>

#include "report/example.hpp"

namespace annulet::report {
namespace {

using testing::HasSubstr;
using testing::Not;

class ConsoleTest : public testing::Test {
 protected:
  ~ConsoleTest() override { std::fclose(file_); }

  std::string text() {
    std::string all;
    std::rewind(file_);
    for (int c = std::fgetc(file_); c != EOF; c = std::fgetc(file_)) all += static_cast<char>(c);
    return all;
  }

  static train::RunInfo info() {
    train::RunInfo info;
    info.model = "mlp 5-4-3 tanh, 39 parameters";
    info.ranks = 2, info.steps = 100, info.placement = "2 ranks on 1 node";
    info.driver = "polling", info.driver_reason = "as asked", info.algorithm = "ring";
    info.buckets = {Bytes(100), Bytes(56)};
    info.warnings = {"one core for two threads"};
    return info;
  }

  std::FILE* file_ = std::tmpfile();
};

TEST_F(ConsoleTest, SaysWhatRunsWhereAndWhyBeforeTheFirstStep) {
  Console console(Liveliness::lines, file_);
  console.begin(info());
  EXPECT_THAT(text(), HasSubstr("mlp 5-4-3 tanh, 39 parameters\n2 ranks on 1 node"));
  EXPECT_THAT(text(), HasSubstr("polling (driver: as asked)"));
  EXPECT_THAT(text(), HasSubstr("buckets   100 B, 56 B"));
  EXPECT_THAT(text(), HasSubstr("warning   one core for two threads"));
}

TEST_F(ConsoleTest, RedrawsOneLineOnATerminalAndErasesItBeforeOtherText) {
  Console console(Liveliness::redraw, file_);
  console.begin(info());
  std::this_thread::sleep_for(std::chrono::milliseconds(110));
  console.step(example::steps()[0]);
  console.evaluated(3, {0.25, 0.875, 100});
  EXPECT_THAT(text(), HasSubstr("\rstep 4/100  loss 0.5000  "));
  EXPECT_THAT(text(), HasSubstr(" left\x1b[K\r\x1b[Kstep 4/100  test loss 0.2500  test accuracy 0.8750\n"));
}

TEST_F(ConsoleTest, WritesNoControlCharactersElsewhere) {
  Console console(Liveliness::lines, file_);
  console.begin(info());
  console.step(example::steps()[0]);
  console.end(example::summary(), example::buckets(), example::steps());
  EXPECT_THAT(text(), Not(HasSubstr("\r")));
  EXPECT_THAT(text(), Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace annulet::report
