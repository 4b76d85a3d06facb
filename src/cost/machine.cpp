#include "annulet/cost/machine.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "annulet/base/config_folder.hpp"
#include "annulet/base/settings_file.hpp"

namespace annulet::cost {
namespace {

const SettingsKind kKind{
    "machine file",
    R"(Write alpha = "10us" and bandwidth = "1.25GB/s", or the same in [inside] and [between]; see annulet calibrate)",
    {"inside", "between", "device"}};

constexpr std::string_view kPeak = "peak_";

SecondsPerByte pace(const SettingsFile& file, const SettingsFile::Entry& entry) {
  const ByteRate rate = file.parsed(entry, parse_rate);
  if (rate.value() <= 0) file.refuse(entry, fmt::format("'{}' moves nothing", entry.value));
  return SecondsPerByte(1 / rate.value());
}

std::optional<EagerLink> eager_of(SettingsFile& file, const std::string& section, const Link& link) {
  const auto *alpha = file.find_or_above(section, "eager_alpha"), *gap = file.find_or_above(section, "eager_gap"),
             *bandwidth = file.find_or_above(section, "eager_bandwidth"),
             *limit = file.find_or_above(section, "eager_limit");
  if (limit == nullptr) {
    if (alpha != nullptr || gap != nullptr || bandwidth != nullptr) file.refuse("eager_limit is missing");
    return std::nullopt;
  }
  EagerLink eager{file.parsed(*limit, parse_bytes), link.alpha, link.gap, link.beta};
  if (alpha != nullptr) eager.alpha = file.parsed(*alpha, parse_seconds);
  if (gap != nullptr) eager.gap = file.parsed(*gap, parse_seconds);
  if (bandwidth != nullptr) eager.beta = pace(file, *bandwidth);
  return eager;
}

Link link_of(SettingsFile& file, const std::string& section, const std::string& source) {
  const auto *alpha = file.find_or_above(section, "alpha"), *gap = file.find_or_above(section, "gap"),
             *bandwidth = file.find_or_above(section, "bandwidth"),
             *reduction = file.find_or_above(section, "reduction"), *moving = file.find_or_above(section, "moving"),
             *burst = file.find_or_above(section, "burst"),
             *burst_bandwidth = file.find_or_above(section, "burst_bandwidth");
  if (alpha == nullptr || bandwidth == nullptr) {
    file.refuse(fmt::format("{} is missing", alpha == nullptr ? "alpha" : "bandwidth"));
  }
  Link link;
  link.alpha = file.parsed(*alpha, parse_seconds), link.beta = pace(file, *bandwidth), link.source = source;
  if (gap != nullptr) link.gap = file.parsed(*gap, parse_seconds);
  if (reduction != nullptr) link.gamma = pace(file, *reduction);
  if (moving != nullptr) link.moving = pace(file, *moving);
  if (burst != nullptr) link.burst = file.parsed(*burst, parse_bytes);
  if (burst_bandwidth != nullptr) link.burst_pace = pace(file, *burst_bandwidth);
  link.eager = eager_of(file, section, link);
  return link;
}

Device device_of(SettingsFile& file) {
  Device device;
  for (const std::string& key : file.keys("device")) {
    if (!key.starts_with(kPeak)) continue;
    const auto* peak = file.find("device", key);
    device.peaks[key.substr(kPeak.size())] = file.parsed(*peak, parse_flop_rate);
  }
  const auto *memory = file.find("device", "memory"), *ranks = file.find("device", "ranks_per_node"),
             *efficiency = file.find("device", "efficiency");
  if (memory != nullptr) device.memory = file.parsed(*memory, parse_bytes);
  if (ranks != nullptr) {
    device.ranks_per_node = file.parsed(*ranks, [](auto text) { return static_cast<int>(parse_count(text, 1)); });
  }
  if (efficiency == nullptr) return device;
  device.efficiency = file.parsed(*efficiency, parse_positive);
  if (device.efficiency > 1) file.refuse(*efficiency, "an efficiency is at most 1");
  return device;
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
  if (link.burst > Bytes(0)) {
    text += fmt::format("burst = \"{}B\"\nburst_bandwidth = \"{}B/s\"\n", link.burst.value(), rate(link.burst_pace));
  }
  if (!link.eager) return text;
  const EagerLink& eager = *link.eager;
  return text + fmt::format(
                    "eager_limit = \"{}B\"\neager_alpha = \"{}s\"\neager_gap = \"{}s\"\neager_bandwidth = "
                    "\"{}B/s\"\n",
                    eager.limit.value(), eager.alpha.count(), eager.gap.count(), rate(eager.beta));
}

std::string device_toml(const Device& device) {
  std::string text;
  for (const auto& [type, peak] : device.peaks) text += fmt::format("{}{} = \"{}FLOP/s\"\n", kPeak, type, peak.value());
  if (device.memory > Bytes(0)) text += fmt::format("memory = \"{}B\"\n", device.memory.value());
  if (device.ranks_per_node > 0) text += fmt::format("ranks_per_node = {}\n", device.ranks_per_node);
  if (device.efficiency > 0) text += fmt::format("efficiency = {}\n", device.efficiency);
  return text.empty() ? text : "\n[device]\n" + text;
}

}  // namespace

Machine parse_machine(std::string_view text, const std::string& name) {
  SettingsFile file(text, name, kKind);
  Machine machine;
  const auto *source = file.find("", "source"), *compute = file.find("", "compute");
  machine.source = source != nullptr ? source->value : name;
  if (compute != nullptr) machine.compute = file.parsed(*compute, parse_flop_rate);
  machine.device = device_of(file);
  const bool inside = file.has_section("inside"), between = file.has_section("between");
  machine.inside = link_of(file, inside || !between ? "inside" : "between", machine.source);
  machine.between = link_of(file, between || !inside ? "between" : "inside", machine.source);
  file.require_all_used();
  return machine;
}

Machine read_machine_file(const std::string& name) {
  const std::filesystem::path file = find_config("machines", name);
  return parse_machine(read_settings_text(file, "machine file"), file.string());
}

std::string to_toml(const Machine& machine, const std::vector<std::string>& comments) {
  std::string text;
  for (const std::string& comment : comments) text += "# " + comment + '\n';
  text += fmt::format("source = {}\n", quoted(machine.source));
  if (machine.compute.value() > 0) text += fmt::format("compute = \"{}FLOP/s\"\n", machine.compute.value());
  text += "\n[inside]\n" + link_toml(machine.inside);
  const std::string between = link_toml(machine.between);
  if (between != link_toml(machine.inside)) text += "\n[between]\n" + between;
  return text + device_toml(machine.device);
}

}  // namespace annulet::cost
