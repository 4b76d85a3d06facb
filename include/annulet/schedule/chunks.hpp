#pragma once
// Chunks: the p near-equal slices of a vector of n elements. The only place that knows remainders:
// slice i is [floor(i n / p), floor((i + 1) n / p)), cut on multiples of `granule` (the last slice takes what is left).
// Slices may be empty (n < p); together they cover [0, n) once.
#include "annulet/base/error.hpp"
#include "annulet/base/units.hpp"

namespace annulet::schedule {

struct Interval {
  Elements first = 0;
  Elements count = 0;

  Elements end() const { return first + count; }
  bool overlaps(Interval other) const { return first < other.end() && other.first < end(); }
  friend bool operator==(Interval, Interval) = default;
};

// Chunk `index` of `parts`. All arguments as above; index in [0, parts).
inline Interval chunk(Elements n, int parts, int index, Elements granule = 1) {
  ANNULET_EXPECTS(n >= 0 && parts > 0 && granule > 0 && index >= 0 && index < parts,
                  "a chunk is one of `parts` slices");
  const Elements granules = (n + granule - 1) / granule;
  const auto cut = [&](int i) {
    const Elements whole = granules / parts, rest = granules % parts;
    const Elements at = (whole * i + rest * i / parts) * granule;
    return at < n ? at : n;
  };
  const Elements first = cut(index);
  return {first, cut(index + 1) - first};
}

// Chunks [begin, end) of `parts` together; 0 <= begin <= end <= parts.
inline Interval chunk_range(Elements n, int parts, int begin, int end) {
  ANNULET_EXPECTS(begin <= end, "chunks are counted upwards");
  if (begin == end) return {};
  const Elements first = chunk(n, parts, begin).first;
  return {first, chunk(n, parts, end - 1).end() - first};
}

// Number of segments of at most `segment` elements that an interval is sent in; 0 for an empty one.
inline Elements segments(Interval interval, Elements segment) {
  ANNULET_EXPECTS(segment > 0, "a segment has at least one element");
  return (interval.count + segment - 1) / segment;
}

// Segment `index` of an interval.
inline Interval segment_of(Interval interval, Elements segment, Elements index) {
  const Elements first = index * segment;
  const Elements rest = interval.count - first;
  return {interval.first + first, rest < segment ? rest : segment};
}

}  // namespace annulet::schedule
