#pragma once
// The part of TOML that machine and model files need: sections, and keys whose values are strings, numbers or lists of
// one line. Whoever reads one asks for keys by name; a key that nobody asked for is an error, so that a misspelt one is
// never ignored.
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "annulet/base/error.hpp"

namespace annulet {

// What a file is, for its error messages: "FILE is not a {what}: ... {hint}".
struct SettingsKind {
  std::string what;                   // "machine file"
  std::string hint;                   // what to try
  std::vector<std::string> sections;  // that it may have
};

class SettingsFile {
 public:
  struct Entry {
    std::string value;  // without quotes; a list with its brackets
    int line = 0;
    std::string key;  // without its section
    bool used = false;
  };

  // `name` stands for the file in messages. Throws InputError for what is not of this form.
  SettingsFile(std::string_view text, std::string name, SettingsKind kind);

  // The key of a section ("" above the sections), or null. Marks it as used.
  const Entry* find(const std::string& section, const std::string& key);
  // Likewise, or the key of the same name above the sections.
  const Entry* find_or_above(const std::string& section, const std::string& key);

  std::vector<std::string> keys(const std::string& section) const;
  bool has_section(const std::string& section) const;
  const std::string& name() const { return name_; }

  // parse(value); an InputError with the file, line and key before it.
  template <class Parse>
  auto parsed(const Entry& entry, Parse parse) const {
    try {
      return parse(std::string_view(entry.value));
    } catch (const InputError& error) {
      refuse(entry, entry.key + ": " + error.what(), "");
    }
  }

  void require_all_used() const;

  [[noreturn]] void refuse(const std::string& what) const;
  [[noreturn]] void refuse(const Entry& entry, const std::string& what) const;
  [[noreturn]] void refuse(const Entry& entry, const std::string& what, std::string_view hint) const;

 private:
  void read(std::string_view line, std::string& section, int number);
  std::string value_of(std::string_view text, int number) const;
  [[noreturn]] void refuse_with(const std::string& what, std::string_view hint) const;

  std::string name_;
  SettingsKind kind_;
  std::map<std::string, Entry> entries_;  // "inside.alpha", ".alpha"
  std::vector<std::string> sections_;
};

// The text of a file; InputError "the {what} FILE cannot be read (...)".
std::string read_settings_text(const std::filesystem::path& file, std::string_view what);

// "true" or "false"; a whole number of at least `least`; a number above 0. Throw InputError.
bool parse_bool(std::string_view text);
std::int64_t parse_count(std::string_view text, std::int64_t least);
double parse_positive(std::string_view text);

}  // namespace annulet
