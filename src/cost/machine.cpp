#include "annulet/cost/machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>

#include "annulet/base/error.hpp"

namespace annulet::cost {
namespace {

constexpr const char* kHint =
    R"(Write alpha = "10us" and bandwidth = "1.25GB/s", or the same in [inside] and [between]; see annulet calibrate)";

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

// The part of TOML that a machine file needs: sections, and keys whose values are strings or numbers of one line.
class Reader {
 public:
  Reader(std::string_view text, const std::string& name) : name_(name) {
    std::string section;
    while (!text.empty()) {
      ++line_;
      const std::size_t end = std::min(text.find('\n'), text.size());
      read(trimmed(text.substr(0, end)), section);
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }

  struct Entry {
    std::string value;
    int line = 0;
    bool used = false;
  };

  // The key of the section, or of the same name above the sections.
  Entry* find(const std::string& section, const std::string& key) {
    for (const std::string& full : {section + '.' + key, '.' + key}) {
      if (const auto found = entries_.find(full); found != entries_.end())
        return found->second.used = true, &found->second;
    }
    return nullptr;
  }

  // parse(value), its error with the file and line before it.
  template <class Value>
  Value parsed(const Entry& entry, Value (*parse)(std::string_view)) const {
    try {
      return parse(entry.value);
    } catch (const InputError& error) {
      refuse(fmt::format("line {}: {}", entry.line, error.what()), "");
    }
  }

  bool has_section(const std::string& section) const {
    return std::ranges::find(sections_, section) != sections_.end();
  }

  void require_all_used() const {
    for (const auto& [key, entry] : entries_) {
      if (!entry.used) refuse(fmt::format("line {}: unknown key '{}'", entry.line, key.substr(key.front() == '.')));
    }
  }

  [[noreturn]] void refuse(const std::string& what, const char* hint = kHint) const {
    const std::string_view text = what.ends_with('.') ? std::string_view(what).substr(0, what.size() - 1) : what;
    throw InputError({fmt::format("{} is not a machine file: {}", name_, text), "", hint});
  }

 private:
  void read(std::string_view line, std::string& section) {
    if (line.empty() || line.front() == '#') return;
    if (line.front() == '[') {
      section = line.substr(1, std::min(line.find(']'), line.size()) - 1);
      if (section != "inside" && section != "between")
        refuse(fmt::format("line {}: unknown section '{}'", line_, section));
      sections_.push_back(section);
      return;
    }
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) refuse(fmt::format("line {}: '{}' has no '='", line_, line));
    const std::string key = section + '.' + std::string(trimmed(line.substr(0, equals)));
    if (!entries_.try_emplace(key, value_of(trimmed(line.substr(equals + 1))), line_).second) {
      refuse(fmt::format("line {}: '{}' is given twice", line_, key.substr(key.front() == '.')));
    }
  }

  std::string value_of(std::string_view text) const {
    if (text.empty() || text.front() == '#') refuse(fmt::format("line {}: a value is missing", line_));
    if (text.front() != '"' && text.front() != '\'') return std::string(trimmed(text.substr(0, text.find('#'))));
    const std::size_t end = text.find(text.front(), 1);
    const std::string_view rest = end == std::string_view::npos ? "" : trimmed(text.substr(end + 1));
    if (end == std::string_view::npos || (!rest.empty() && rest.front() != '#')) {
      refuse(fmt::format("line {}: {} is no value", line_, text));
    }
    return std::string(text.substr(1, end - 1));
  }

  std::string name_;
  int line_ = 0;
  std::map<std::string, Entry> entries_;  // "inside.alpha", ".alpha"
  std::vector<std::string> sections_;
};

SecondsPerByte pace(const Reader& reader, const Reader::Entry& entry) {
  const ByteRate rate = reader.parsed(entry, parse_rate);
  if (rate.value() <= 0) reader.refuse(fmt::format("line {}: '{}' moves nothing", entry.line, entry.value));
  return SecondsPerByte(1 / rate.value());
}

std::optional<EagerLink> eager_of(Reader& reader, const std::string& section, const Link& link) {
  const auto *alpha = reader.find(section, "eager_alpha"), *gap = reader.find(section, "eager_gap"),
             *bandwidth = reader.find(section, "eager_bandwidth"), *limit = reader.find(section, "eager_limit");
  if (limit == nullptr) {
    if (alpha != nullptr || gap != nullptr || bandwidth != nullptr) reader.refuse("eager_limit is missing");
    return std::nullopt;
  }
  EagerLink eager{reader.parsed(*limit, parse_bytes), link.alpha, link.gap, link.beta};
  if (alpha != nullptr) eager.alpha = reader.parsed(*alpha, parse_seconds);
  if (gap != nullptr) eager.gap = reader.parsed(*gap, parse_seconds);
  if (bandwidth != nullptr) eager.beta = pace(reader, *bandwidth);
  return eager;
}

Link link_of(Reader& reader, const std::string& section, const std::string& source) {
  const auto *alpha = reader.find(section, "alpha"), *gap = reader.find(section, "gap"),
             *bandwidth = reader.find(section, "bandwidth"), *reduction = reader.find(section, "reduction"),
             *moving = reader.find(section, "moving");
  if (alpha == nullptr || bandwidth == nullptr) {
    reader.refuse(fmt::format("{} is missing", alpha == nullptr ? "alpha" : "bandwidth"));
  }
  Link link;
  link.alpha = reader.parsed(*alpha, parse_seconds), link.beta = pace(reader, *bandwidth), link.source = source;
  if (gap != nullptr) link.gap = reader.parsed(*gap, parse_seconds);
  if (reduction != nullptr) link.gamma = pace(reader, *reduction);
  if (moving != nullptr) link.moving = pace(reader, *moving);
  link.eager = eager_of(reader, section, link);
  return link;
}

// The reader takes what stands between quotes as it is: there are no escapes.
std::string quoted(std::string text) {
  std::replace(text.begin(), text.end(), '"', '\'');
  std::replace(text.begin(), text.end(), '\n', ' ');
  return '"' + text + '"';
}

std::string link_toml(const Link& link) {
  const auto rate = [](SecondsPerByte p) { return p.value() > 0 ? 1 / p.value() : 1e18; };
  std::string text = fmt::format("alpha = \"{}s\"\ngap = \"{}s\"\nbandwidth = \"{}B/s\"\n", link.alpha.count(),
                                 link.gap.count(), rate(link.beta));
  if (link.gamma.value() > 0) text += fmt::format("reduction = \"{}B/s\"\n", rate(link.gamma));
  if (link.moving.value() > 0) text += fmt::format("moving = \"{}B/s\"\n", rate(link.moving));
  if (!link.eager) return text;
  const EagerLink& eager = *link.eager;
  return text + fmt::format(
                    "eager_limit = \"{}B\"\neager_alpha = \"{}s\"\neager_gap = \"{}s\"\neager_bandwidth = "
                    "\"{}B/s\"\n",
                    eager.limit.value(), eager.alpha.count(), eager.gap.count(), rate(eager.beta));
}

}  // namespace

Machine parse_machine(std::string_view text, const std::string& name) {
  Reader reader(text, name);
  Machine machine;
  const auto *source = reader.find("", "source"), *compute = reader.find("", "compute");
  machine.source = source != nullptr ? source->value : name;
  if (compute != nullptr) machine.compute = reader.parsed(*compute, parse_flop_rate);
  const bool inside = reader.has_section("inside"), between = reader.has_section("between");
  machine.inside = link_of(reader, inside || !between ? "inside" : "between", machine.source);
  machine.between = link_of(reader, between || !inside ? "between" : "inside", machine.source);
  reader.require_all_used();
  return machine;
}

Machine read_machine_file(const std::filesystem::path& file) {
  std::ifstream input(file);
  const std::string text(std::istreambuf_iterator<char>(input), {});
  if (!input.is_open() || input.bad() || std::filesystem::is_directory(file)) {
    throw InputError({fmt::format("the machine file {} cannot be read", file.string()), std::strerror(errno),
                      "Name an existing file with --machine"});
  }
  return parse_machine(text, file.string());
}

std::string to_toml(const Machine& machine, const std::vector<std::string>& comments) {
  std::string text;
  for (const std::string& comment : comments) text += "# " + comment + '\n';
  text += fmt::format("source = {}\n", quoted(machine.source));
  if (machine.compute.value() > 0) text += fmt::format("compute = \"{}FLOP/s\"\n", machine.compute.value());
  text += "\n[inside]\n" + link_toml(machine.inside);
  const std::string between = link_toml(machine.between);
  return between == link_toml(machine.inside) ? text : text + "\n[between]\n" + between;
}

}  // namespace annulet::cost
