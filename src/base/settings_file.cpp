#include "annulet/base/settings_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>

namespace annulet {
namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::string_view without_stop(std::string_view text) {
  return text.ends_with('.') ? text.substr(0, text.size() - 1) : text;
}

std::string without_dot(const std::string& full) { return full.substr(full.front() == '.' ? 1 : 0); }

template <class Number>
Number parse_whole(std::string_view text, std::string_view wanted) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return value;
  throw InputError({fmt::format("'{}' is not {}", text, wanted)});
}

}  // namespace

SettingsFile::SettingsFile(std::string_view text, std::string name, SettingsKind kind)
    : name_(std::move(name)), kind_(std::move(kind)) {
  std::string section;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    read(trimmed(text.substr(0, end)), section, number);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

const SettingsFile::Entry* SettingsFile::find(const std::string& section, const std::string& key) {
  const auto found = entries_.find(section + '.' + key);
  if (found == entries_.end()) return nullptr;
  found->second.used = true;
  return &found->second;
}

const SettingsFile::Entry* SettingsFile::find_or_above(const std::string& section, const std::string& key) {
  const Entry* entry = find(section, key);
  return entry != nullptr ? entry : find("", key);
}

std::vector<std::string> SettingsFile::keys(const std::string& section) const {
  std::vector<std::string> keys;
  for (const auto& [full, entry] : entries_) {
    if (full.starts_with(section + '.')) keys.push_back(full.substr(section.size() + 1));
  }
  return keys;
}

bool SettingsFile::has_section(const std::string& section) const {
  return std::ranges::find(sections_, section) != sections_.end();
}

void SettingsFile::require_all_used() const {
  for (const auto& [key, entry] : entries_) {
    if (!entry.used) refuse(entry, fmt::format("unknown key '{}'", without_dot(key)));
  }
}

void SettingsFile::refuse(const std::string& what) const { refuse_with(what, kind_.hint); }

void SettingsFile::refuse(const Entry& entry, const std::string& what) const { refuse(entry, what, kind_.hint); }

void SettingsFile::refuse(const Entry& entry, const std::string& what, std::string_view hint) const {
  refuse_with(fmt::format("line {}: {}", entry.line, what), hint);
}

void SettingsFile::refuse_with(const std::string& what, std::string_view hint) const {
  throw InputError({fmt::format("{} is not a {}: {}", name_, kind_.what, without_stop(what)), "", std::string(hint)});
}

void SettingsFile::read(std::string_view line, std::string& section, int number) {
  if (line.empty() || line.front() == '#') return;
  if (line.front() == '[') {
    section = line.substr(1, std::min(line.find(']'), line.size()) - 1);
    if (std::ranges::find(kind_.sections, section) == kind_.sections.end()) {
      refuse(fmt::format("line {}: unknown section '{}'", number, section));
    }
    sections_.push_back(section);
    return;
  }
  const std::size_t equals = line.find('=');
  if (equals == std::string_view::npos) refuse(fmt::format("line {}: '{}' has no '='", number, line));
  const std::string key(trimmed(line.substr(0, equals))), full = section + '.' + key;
  if (!entries_.try_emplace(full, value_of(trimmed(line.substr(equals + 1)), number), number, key).second) {
    refuse(fmt::format("line {}: '{}' is given twice", number, without_dot(full)));
  }
}

std::string SettingsFile::value_of(std::string_view text, int number) const {
  if (text.empty() || text.front() == '#') refuse(fmt::format("line {}: a value is missing", number));
  if (text.front() != '"' && text.front() != '\'') return std::string(trimmed(text.substr(0, text.find('#'))));
  const std::size_t end = text.find(text.front(), 1);
  const std::string_view rest = end == std::string_view::npos ? "" : trimmed(text.substr(end + 1));
  if (end == std::string_view::npos || (!rest.empty() && rest.front() != '#')) {
    refuse(fmt::format("line {}: {} is no value", number, text));
  }
  return std::string(text.substr(1, end - 1));
}

std::string read_settings_text(const std::filesystem::path& file, std::string_view what) {
  std::ifstream input(file);
  std::string text(std::istreambuf_iterator<char>(input), {});
  if (!input.is_open() || input.bad() || std::filesystem::is_directory(file)) {
    throw InputError(
        {fmt::format("the {} {} cannot be read", what, file.string()), std::strerror(errno), "Name an existing file"});
  }
  return text;
}

bool parse_bool(std::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  throw InputError({fmt::format("'{}' is neither true nor false", text)});
}

std::int64_t parse_count(std::string_view text, std::int64_t least) {
  const std::string wanted = fmt::format("a whole number of at least {}", least);
  const auto value = parse_whole<std::int64_t>(text, wanted);
  if (value >= least) return value;
  throw InputError({fmt::format("'{}' is not {}", text, wanted)});
}

double parse_positive(std::string_view text) {
  const auto value = parse_whole<double>(text, "a number above 0");
  if (std::isfinite(value) && value > 0) return value;
  throw InputError({fmt::format("'{}' is not a number above 0", text)});
}

}  // namespace annulet
