#include "timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace annulet::plan {
namespace {

constexpr int kWidth = 64;
constexpr std::size_t kNumbered = 9;  // buckets that are drawn by their number

// Columns [from, to) of a line; at least one, so that nothing is invisible.
void fill(std::string& line, Seconds from, Seconds to, Seconds whole, char mark) {
  const auto column = [&](Seconds at) {
    return static_cast<std::size_t>(std::clamp(std::floor(at / whole * kWidth), 0.0, double{kWidth - 1}));
  };
  for (std::size_t c = column(from); c <= std::max(column(from), column(to) - (column(to) > 0 ? 1 : 0)); ++c) {
    line[c] = mark;
  }
}

}  // namespace

std::string timeline(const cost::StepPrediction& step) {
  std::string computing(kWidth, ' '), wire(kWidth, ' ');
  fill(computing, Seconds(0), step.backward_begins, step.step, 'f');
  fill(computing, step.backward_begins, step.backward_ends, step.step, 'b');
  const Seconds summed = step.backward_ends + step.exposed + step.control;
  if (step.optimizer > Seconds(0)) fill(computing, summed, step.step, step.step, 'o');
  const bool few = step.buckets.size() <= kNumbered;
  for (std::size_t i = 0; i < step.buckets.size(); ++i) {
    const auto& [bytes, ready, start, end] = step.buckets[i];
    if (end > start) fill(wire, start, end, step.step, few ? static_cast<char>('1' + i) : '=');
  }
  return fmt::format("  compute |{}|\n  wire    |{}|\n           0{:>{}}\n{}", computing, wire, to_text(step.step),
                     kWidth - 1,
                     few ? "  f forward, b backward, o optimiser; 1, 2, ...: buckets, from launch to sum\n"
                         : "  f forward, b backward, o optimiser; =: buckets, from launch to sum\n");
}

}  // namespace annulet::plan
