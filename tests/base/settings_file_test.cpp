#include "annulet/base/settings_file.hpp"

#include <gmock/gmock.h>

#include "base/temporary_folder.hpp"

namespace annulet {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

const SettingsKind kKind{"test file", "Write a = 1", {"one", "two"}};

TEST(SettingsFile, FindsKeysInTheirSectionOrAboveThem) {
  SettingsFile file("a = 1  # comment\n[one]\nb = \"x = 2\"\n[two]\na = 3\n", "f", kKind);
  EXPECT_EQ(file.find("", "a")->value, "1");
  EXPECT_EQ(file.find("one", "b")->value, "x = 2");
  EXPECT_EQ(file.find("one", "a"), nullptr);
  EXPECT_EQ(file.find_or_above("one", "a")->value, "1");
  EXPECT_EQ(file.find_or_above("two", "a")->value, "3");
  EXPECT_TRUE(file.has_section("two"));
  EXPECT_EQ(file.keys("two"), std::vector<std::string>{"a"});
  file.require_all_used();
}

TEST(SettingsFile, SaysWhatIsWrongWithItsNameAndLine) {
  const auto refuses = [](const char* text, const char* why) {
    EXPECT_THAT([&] { SettingsFile(text, "f", kKind).require_all_used(); },
                ThrowsMessage<InputError>(HasSubstr(std::string("f is not a test file: ") + why)));
  };
  refuses("a = 1\nb\n", "line 2: 'b' has no '='");
  refuses("a = \n", "line 1: a value is missing");
  refuses("a = \"1\n", "line 1: \"1 is no value");
  refuses("a = 1\na = 2\n", "line 2: 'a' is given twice");
  refuses("[three]\n", "line 1: unknown section 'three'");
  refuses("[one]\n\nc = 1\n", "line 3: unknown key 'one.c'. Write a = 1.");
}

TEST(SettingsFile, ReadsValuesAndNamesTheLineOfThoseItCannot) {
  SettingsFile file("n = 12\nyes = true\nhalf = 0.5\nbad = -3\n", "f", kKind);
  EXPECT_EQ(file.parsed(*file.find("", "n"), [](auto text) { return parse_count(text, 1); }), 12);
  EXPECT_TRUE(file.parsed(*file.find("", "yes"), parse_bool));
  EXPECT_EQ(file.parsed(*file.find("", "half"), parse_positive), 0.5);
  EXPECT_THAT([&] { file.parsed(*file.find("", "bad"), parse_positive); },
              ThrowsMessage<InputError>(HasSubstr("line 4: bad: '-3' is not a number above 0")));
  EXPECT_THAT([&] { file.parsed(*file.find("", "bad"), [](auto text) { return parse_count(text, 0); }); },
              ThrowsMessage<InputError>(HasSubstr("line 4: bad: '-3' is not a whole number of at least 0")));
  EXPECT_THAT([] { parse_bool("ja"); }, ThrowsMessage<InputError>(HasSubstr("'ja' is neither true nor false")));
}

TEST(SettingsFile, NamesAFileThatCannotBeRead) {
  const test::TemporaryFolder folder;
  EXPECT_EQ(read_settings_text(folder.write("f.toml", "a = 1\n"), "test file"), "a = 1\n");
  EXPECT_THAT([&] { read_settings_text(folder / "none.toml", "test file"); },
              ThrowsMessage<InputError>(HasSubstr("none.toml cannot be read")));
}

}  // namespace
}  // namespace annulet
