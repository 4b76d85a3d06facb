#pragma once
// How a collective is run: by which algorithm and in which segments. And what people say who know better than the
// prediction, in the style of oneCCL: "recursive_doubling:0-8KiB;ring@256KiB:1MiB-max" names the algorithm, and if need
// be the segment, of vectors of so many bytes.
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "annulet/schedule/algorithms.hpp"

namespace annulet::schedule {

struct Execution {
  Algorithm algorithm = Algorithm::ring;
  Bytes segment{256 << 10};  // most bytes in one message
  int slots = 2;             // received segments that may wait to be added

  friend bool operator==(const Execution&, const Execution&) = default;
};

// "ring, segments of 262.1 kB"; without them where the algorithm cuts none.
std::string to_text(const Execution& execution);

// Whether the algorithm cuts what it sends into segments.
bool has_segments(Algorithm algorithm);

// `element`: bytes of one under way.
PlanShape plan_shape(const Execution& execution, int rank, int world, Elements elements, Bytes element);

constexpr Bytes kNoLimit{std::numeric_limits<std::int64_t>::max()};  // "max"

// Vectors of `first` to `last` bytes, both included.
struct ExecutionRange {
  Algorithm algorithm = Algorithm::ring;
  std::optional<Bytes> segment{};
  Bytes first{0}, last{0};

  friend bool operator==(const ExecutionRange&, const ExecutionRange&) = default;
};

// Ranges ascend. Sizes that no range has are free to choose. Throws InputError for what it cannot read, for an
// algorithm that the collective lacks, and for a size in two ranges.
std::vector<ExecutionRange> parse_execution_ranges(Collective collective, std::string_view text);

// What parse_execution_ranges reads back.
std::string to_text(const std::vector<ExecutionRange>& ranges);

const ExecutionRange* range_of(const std::vector<ExecutionRange>& ranges, Bytes bytes);

}  // namespace annulet::schedule
