#include "annulet/schedule/execution.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace annulet::schedule {
namespace {

[[noreturn]] void refuse(std::string_view entry, std::string why) {
  throw InputError({fmt::format("'{}' names no algorithm for a range of sizes", entry), std::move(why),
                    "Write ALGORITHM[@SEGMENT][:FIRST-LAST], several with ';' between: "
                    "recursive_doubling:0-8KiB;ring@256KiB:1MiB-max"});
}

struct Halves {
  std::string_view before;
  std::optional<std::string_view> after;
};

Halves halves(std::string_view text, char at) {
  const std::size_t found = text.find(at);
  if (found == std::string_view::npos) return {text, std::nullopt};
  return {text.substr(0, found), text.substr(found + 1)};
}

Bytes last_of(std::string_view text) { return text == "max" ? kNoLimit : parse_bytes(text); }

ExecutionRange parse_range(Collective collective, std::string_view entry) {
  const auto [how, sizes] = halves(entry, ':');
  const auto [name, segment] = halves(how, '@');
  ExecutionRange range{parse_algorithm(name), std::nullopt, Bytes(0), kNoLimit};
  if (!has_algorithm(collective, range.algorithm)) {
    refuse(entry, fmt::format("{} has no algorithm {}", to_text(collective), name));
  }
  if (segment) {
    range.segment = parse_bytes(*segment);
    if (!has_segments(range.algorithm)) refuse(entry, fmt::format("{} cuts no segments", name));
    if (*range.segment == Bytes(0)) refuse(entry, "a segment has at least a byte");
  }
  if (!sizes) return range;
  const auto [first, last] = halves(*sizes, '-');
  if (!last) refuse(entry, "a range has a first and a last size");
  range.first = parse_bytes(first), range.last = last_of(*last);
  if (range.last < range.first) refuse(entry, fmt::format("{} is less than {}", *last, first));
  return range;
}

std::string exact(Bytes bytes) { return bytes == kNoLimit ? "max" : fmt::format("{}B", bytes.value()); }

}  // namespace

bool has_segments(Algorithm algorithm) {
  return algorithm == Algorithm::ring || algorithm == Algorithm::direct || algorithm == Algorithm::pipelined_tree ||
         algorithm == Algorithm::pipelined_chain;
}

std::string to_text(const Execution& execution) {
  const std::string_view name = to_text(execution.algorithm);
  if (!has_segments(execution.algorithm)) return std::string(name);
  return fmt::format("{}, segments of {}", name, annulet::to_text(execution.segment));
}

PlanShape plan_shape(const Execution& execution, int rank, int world, Elements elements, Bytes element) {
  const Elements segment = std::max<Elements>(1, execution.segment.value() / element.value());
  return {rank, world, elements, segment, execution.slots};
}

std::vector<ExecutionRange> parse_execution_ranges(Collective collective, std::string_view text) {
  std::vector<ExecutionRange> ranges;
  for (std::optional<std::string_view> rest = text; rest;) {
    const auto [entry, after] = halves(*rest, ';');
    ranges.push_back(parse_range(collective, entry));
    rest = after;
  }
  std::ranges::stable_sort(ranges, {}, &ExecutionRange::first);
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].first > ranges[i - 1].last) continue;
    throw InputError({fmt::format("{} bytes are in two ranges of '{}'", ranges[i].first.value(), text),
                      fmt::format("of {} and of {}", to_text(ranges[i - 1].algorithm), to_text(ranges[i].algorithm)),
                      "Both ends of a range belong to it"});
  }
  return ranges;
}

std::string to_text(const std::vector<ExecutionRange>& ranges) {
  std::string text;
  for (const ExecutionRange& range : ranges) {
    const std::string segment = range.segment ? fmt::format("@{}", exact(*range.segment)) : "";
    text += fmt::format("{}{}{}:{}-{}", text.empty() ? "" : ";", to_text(range.algorithm), segment, exact(range.first),
                        exact(range.last));
  }
  return text;
}

const ExecutionRange* range_of(const std::vector<ExecutionRange>& ranges, Bytes bytes) {
  const auto found = std::ranges::find_if(
      ranges, [&](const ExecutionRange& range) { return range.first <= bytes && bytes <= range.last; });
  return found == ranges.end() ? nullptr : &*found;
}

}  // namespace annulet::schedule
