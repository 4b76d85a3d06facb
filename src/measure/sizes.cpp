#include "sizes.hpp"

#include <algorithm>
#include <cmath>

#include "annulet/base/error.hpp"

namespace annulet::measure {
namespace {

constexpr std::int64_t kElement = sizeof(float);
constexpr double kLeverage = 1.5;

// time(bytes) = base + slope * bytes.
struct Trend {
  double base, slope;
  Seconds at(Bytes bytes) const { return Seconds(base + slope * bytes.as_double()); }
};

Trend through(std::span<const cost::RingPoint> measured) {
  const cost::RingPoint& last = measured.back();
  const double bytes = last.bytes.as_double(), time = last.time.count();
  if (measured.size() == 1) return {0, time / bytes};
  const cost::RingPoint& before = measured[measured.size() - 2];
  const double slope = std::max(0.0, (time - before.time.count()) / (bytes - before.bytes.as_double()));
  return {time - slope * bytes, slope};
}

// Two points are needed, and beta is lost in the noise unless the largest size takes noticeably longer than the
// smallest.
bool must_go_on(std::span<const cost::RingPoint> measured, Seconds budget, Seconds left) {
  const bool flat = measured.back().time < kLeverage * measured.front().time;
  return measured.size() == 1 || (flat && left > -budget);
}

}  // namespace

std::vector<Bytes> size_ladder(Bytes smallest, Bytes largest, int ranks) {
  const auto whole = [](std::int64_t bytes) { return bytes / kElement * kElement; };
  std::int64_t size = std::max(whole(smallest.value()), ranks * kElement);
  const std::int64_t top = std::max(whole(largest.value()), 2 * size);
  std::vector<Bytes> ladder;
  for (; size < top; size *= 2) ladder.emplace_back(size);
  ladder.emplace_back(top);
  return ladder;
}

std::optional<std::size_t> next_size(std::span<const Bytes> ladder, int sizes,
                                     std::span<const cost::RingPoint> measured, Seconds budget, Seconds left) {
  ANNULET_EXPECTS(!measured.empty() && !ladder.empty(), "the first size is measured without asking");
  const Bytes last = measured.back().bytes;
  const int to_come = sizes - static_cast<int>(measured.size());
  const bool must = must_go_on(measured, budget, left);
  if (last >= ladder.back() || to_come <= 0) return std::nullopt;

  const double ratio = std::pow(ladder.back() / last, 1.0 / to_come);
  const Trend line = through(measured);
  const auto fits = [&](Bytes bytes) { return must || kFewestRounds * line.at(bytes) <= left; };
  auto rung = std::upper_bound(ladder.begin(), ladder.end(), last);
  if (!fits(*rung)) return std::nullopt;
  while (rung + 1 != ladder.end() && *(rung + 1) / last < ratio * 1.01 && fits(*(rung + 1))) ++rung;
  return static_cast<std::size_t>(rung - ladder.begin());
}

}  // namespace annulet::measure
