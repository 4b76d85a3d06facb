#include "annulet/base/units.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <span>

#include "annulet/base/error.hpp"

namespace annulet {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr std::array kByteUnits{Unit{"", 1},          Unit{"B", 1},        Unit{"kB", 1e3},   Unit{"KB", 1e3},
                                Unit{"MB", 1e6},      Unit{"GB", 1e9},     Unit{"KiB", 1024}, Unit{"kiB", 1024},
                                Unit{"MiB", 1 << 20}, Unit{"GiB", 1 << 30}};
constexpr std::array kTimeUnits{Unit{"", 1},      Unit{"s", 1},    Unit{"ms", 1e-3}, Unit{"us", 1e-6},
                                Unit{"ns", 1e-9}, Unit{"min", 60}, Unit{"h", 3600}};
constexpr std::array kRateUnits{Unit{"B/s", 1},      Unit{"kB/s", 1e3},      Unit{"MB/s", 1e6},      Unit{"GB/s", 1e9},
                                Unit{"KiB/s", 1024}, Unit{"MiB/s", 1 << 20}, Unit{"GiB/s", 1 << 30}, Unit{"kb/s", 125},
                                Unit{"Mb/s", 125e3}, Unit{"Gb/s", 125e6}};
constexpr std::array kFlopUnits{Unit{"FLOP/s", 1}, Unit{"MFLOP/s", 1e6}, Unit{"GFLOP/s", 1e9}, Unit{"TFLOP/s", 1e12},
                                Unit{"PFLOP/s", 1e15}};

double parse(std::string_view text, std::span<const Unit> units, std::string_view kind, std::string_view forms) {
  const auto refuse = [&](std::string_view why) {
    throw InputError({fmt::format("'{}' is not a {}", text, kind), std::string(why), fmt::format("Write {}", forms)});
  };
  double number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || !std::isfinite(number)) refuse("it does not start with a number");
  if (number < 0) refuse("it is negative");
  std::string_view name(rest, static_cast<std::size_t>(text.data() + text.size() - rest));
  while (!name.empty() && name.front() == ' ') name.remove_prefix(1);
  for (const Unit& unit : units) {
    if (unit.name == name) return number * unit.factor;
  }
  refuse(fmt::format("the unit '{}' is unknown", name));
  return 0;
}

// Four significant digits with the largest unit that leaves a number of at least one.
std::string scaled(double value, std::span<const Unit> units) {
  const Unit* chosen = &units.front();
  for (const Unit& unit : units) {
    if (std::abs(value) >= unit.factor * 0.99995) chosen = &unit;
  }
  return fmt::format("{:.4g} {}", value / chosen->factor, chosen->name);
}

}  // namespace

Bytes parse_bytes(std::string_view text) {
  const double bytes = parse(text, kByteUnits, "size", "bytes as 65536, 64KiB, 4MiB or 25MB");
  if (bytes != std::floor(bytes) || bytes > 9e18) {
    throw InputError({fmt::format("'{}' is not a size", text), "it is not a whole number of bytes", ""});
  }
  return Bytes(static_cast<std::int64_t>(bytes));
}

Seconds parse_seconds(std::string_view text) {
  return Seconds(parse(text, kTimeUnits, "time", "seconds as 300, 1.5s, 10ms or 20us"));
}

ByteRate parse_rate(std::string_view text) {
  return ByteRate(parse(text, kRateUnits, "bandwidth", "bytes or bits per second as 125MB/s, 1.25GB/s or 10Gb/s"));
}

FlopRate parse_flop_rate(std::string_view text) {
  return FlopRate(parse(text, kFlopUnits, "computing rate", "operations per second as 55GFLOP/s or 1.2TFLOP/s"));
}

std::string to_text(Bytes bytes) {
  static constexpr std::array units{Unit{"B", 1}, Unit{"kB", 1e3}, Unit{"MB", 1e6}, Unit{"GB", 1e9}, Unit{"TB", 1e12}};
  return scaled(bytes.as_double(), units);
}

std::string to_text(Seconds time) {
  static constexpr std::array units{Unit{"ns", 1e-9}, Unit{"us", 1e-6}, Unit{"ms", 1e-3}, Unit{"s", 1}};
  return scaled(time.count(), units);
}

std::string to_text(ByteRate rate) {
  static constexpr std::array units{Unit{"B/s", 1}, Unit{"kB/s", 1e3}, Unit{"MB/s", 1e6}, Unit{"GB/s", 1e9}};
  return scaled(rate.value(), units);
}

std::string to_text(FlopRate rate) { return scaled(rate.value(), kFlopUnits); }

}  // namespace annulet
