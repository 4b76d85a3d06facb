#include "cli/cpu_check.hpp"

#include <gmock/gmock.h>

#include <array>
#include <cstdlib>
#include <string>
#include <vector>

namespace annulet::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string message(const std::vector<CpuFeature>& features, int capacity = 1024) {
  std::string text(static_cast<std::size_t>(capacity), '\0');
  TextBuffer buffer{text.data(), capacity};
  describe_missing({features.data(), static_cast<int>(features.size())}, "x86-64-v3", buffer);
  return text.substr(0, static_cast<std::size_t>(buffer.length));
}

TEST(CpuCheck, IsSilentWhenNothingIsMissing) {
  EXPECT_EQ(message({}), "");
  EXPECT_EQ(message({{"avx2", true}, {"fma", true}}), "");
}

TEST(CpuCheck, NamesWhatIsMissingAndOnlyThat) {
  const std::string text = message({{"avx", true}, {"avx2", false}, {"fma", true}, {"bmi2", false}});
  EXPECT_THAT(text, HasSubstr("built for x86-64-v3 and this CPU lacks avx2, bmi2 ("));
  EXPECT_THAT(text, Not(HasSubstr("fma")));
  EXPECT_THAT(text, HasSubstr("-DANNULET_ARCH="));
}

TEST(CpuCheck, NeverWritesBeyondItsBuffer) { EXPECT_EQ(message({{"avx2", false}}, 10), "annulet: b"); }

#if defined(__x86_64__)
// The same check in a program that claims to need what this CPU has not (cpu_check_stranger.cpp says so if it starts).
TEST(CpuCheck, StopsAProgramBeforeItsStaticInitialisers) {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("xop")) GTEST_SKIP() << "this CPU has every feature of a Bulldozer";
  const std::string command = "\"" CPU_CHECK_STRANGER "\" 2>&1";
  FILE* const pipe = popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string output;
  for (std::array<char, 256> part{}; fgets(part.data(), static_cast<int>(part.size()), pipe) != nullptr;)
    output += part.data();
  EXPECT_NE(pclose(pipe), 0);
  EXPECT_THAT(output, HasSubstr("built for bdver4 and this CPU lacks "));
  EXPECT_THAT(output, HasSubstr("xop"));
  EXPECT_THAT(output, Not(HasSubstr("started")));
}
#endif

}  // namespace
}  // namespace annulet::cli
