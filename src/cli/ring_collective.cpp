#include "ring_collective.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "annulet/base/error.hpp"
#include "annulet/schedule/algorithms.hpp"
#include "annulet/schedule/sparse_all_gather.hpp"

namespace annulet::cli {
namespace {

using schedule::Algorithm;
using schedule::Collective;

constexpr int kMostRanks = 16;
constexpr Elements kMostElements = 1'000'000'000'000;
constexpr Elements kMostSegments = 64;
constexpr std::string_view kSparse = "sparse_all_gather";

void require_drawable(const RingQuestion& q) {
  if (q.ranks < 1 || q.ranks > kMostRanks) {
    throw InputError({fmt::format("--ranks {} cannot be drawn", q.ranks), fmt::format("1 to {} can", kMostRanks),
                      "annulet plan collectives has the times and bytes of any number"});
  }
  if (q.elements < 0 || q.elements > kMostElements) {
    throw InputError({fmt::format("--elements {} is out of range", q.elements),
                      fmt::format("a vector has 0 to {}", kMostElements), ""});
  }
  if (q.root < 0 || q.root >= q.ranks) {
    throw InputError({fmt::format("--root {} is no rank", q.root), fmt::format("there are {}", q.ranks), ""});
  }
}

Elements segment_of(const RingQuestion& q) {
  if (q.segment < 0) throw InputError({fmt::format("--segment {} is out of range", q.segment), "", "Give 1 or more"});
  const Elements segment = q.segment > 0 ? q.segment : std::max<Elements>(1, (q.elements + q.ranks - 1) / q.ranks);
  if (const Elements count = schedule::segments({0, q.elements}, segment); count > kMostSegments) {
    throw InputError({fmt::format("--segment {} cuts the vector into {} segments", segment, count),
                      fmt::format("at most {} can be drawn", kMostSegments), "Raise it"});
  }
  return segment;
}

Collective collective_of(const std::string& name) {
  std::string names;
  for (const Collective collective : schedule::collectives()) {
    if (schedule::to_text(collective) == name) return collective;
    names += fmt::format("{}, ", schedule::to_text(collective));
  }
  throw InputError({fmt::format("'{}' is no collective", name), "", fmt::format("Known: {}{}", names, kSparse)});
}

Algorithm algorithm_of(Collective collective, const std::string& name) {
  const std::vector<Algorithm> all = schedule::algorithms_of(collective);
  std::string names;
  for (const Algorithm algorithm : all) {
    if (schedule::to_text(algorithm) == name) return algorithm;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", schedule::to_text(algorithm));
  }
  if (name.empty()) return all.front();
  throw InputError({fmt::format("{} has no algorithm '{}'", schedule::to_text(collective), name), "",
                    fmt::format("It has: {}", names)});
}

std::string formula_of(Algorithm algorithm, Collective collective) {
  if (algorithm == Algorithm::ring) return collective == Collective::all_reduce ? "2 (p-1)" : "p-1";
  return "";
}

std::vector<schedule::Interval> chunks_of(Elements elements, int ranks) {
  std::vector<schedule::Interval> chunks(static_cast<std::size_t>(ranks));
  for (int r = 0; r < ranks; ++r) chunks[static_cast<std::size_t>(r)] = schedule::chunk(elements, ranks, r);
  return chunks;
}

std::vector<Elements> lengths_of(const RingQuestion& q) {
  std::vector<Elements> lengths = q.lengths;
  if (lengths.empty()) {
    for (const schedule::Interval chunk : chunks_of(q.elements, q.ranks)) lengths.push_back(chunk.count);
  }
  if (std::ssize(lengths) != q.ranks) {
    throw InputError(
        {fmt::format("--lengths has {} numbers for {} ranks", lengths.size(), q.ranks), "", "Give one for each rank"});
  }
  for (const Elements length : lengths) {
    if (length >= 0 && length <= kMostElements / kMostRanks) continue;
    throw InputError({fmt::format("--lengths {} is out of range", length), "", ""});
  }
  return lengths;
}

SteppedCollective sparse_collective(const RingQuestion& q) {
  if (!q.algorithm.empty() && q.algorithm != "ring") {
    throw InputError({fmt::format("{} has no algorithm '{}'", kSparse, q.algorithm), "", "It has: ring"});
  }
  const std::vector<Elements> lengths = lengths_of(q);
  SteppedCollective stepped{fmt::format("{} by ring", kSparse), "p-1", q.ranks - 1, true, {},
                            schedule::gather_promise({}),       {}};
  // One element of a piece stands for all: the promise is asked for first elements only, and pieces may be long.
  for (int r = 0; r < q.ranks; ++r) {
    stepped.plans.push_back(schedule::sparse_all_gather({r, lengths}));
    stepped.chunks.push_back(schedule::sparse_piece(lengths, r));
  }
  const auto owner = [chunks = stepped.chunks](Elements element) {
    const auto found = std::ranges::find_if(chunks, [&](schedule::Interval c) { return element < c.end(); });
    return schedule::Contributions{1} << (found - chunks.begin());
  };
  stepped.promise.before = [owner](int rank, Elements element) {
    return owner(element) & (schedule::Contributions{1} << rank);
  };
  stepped.promise.after = [owner](int, Elements element) { return owner(element); };
  return stepped;
}

}  // namespace

SteppedCollective stepped_collective(const RingQuestion& q) {
  require_drawable(q);
  if (q.collective == kSparse) return sparse_collective(q);
  if (!q.lengths.empty()) {
    throw InputError({fmt::format("--lengths belongs to {}", kSparse),
                      fmt::format("the chunks of {} are of equal length", q.collective), ""});
  }
  const Collective collective = collective_of(q.collective);
  const Algorithm algorithm = algorithm_of(collective, q.algorithm);
  schedule::PlanShape shape{0, q.ranks, q.elements, segment_of(q), 4, q.root};
  SteppedCollective stepped{fmt::format("{} by {}", schedule::to_text(collective), schedule::to_text(algorithm)),
                            formula_of(algorithm, collective),
                            algorithm == Algorithm::ring ? schedule::steps(collective, algorithm, q.ranks) : -1,
                            false,
                            {},
                            schedule::promise_of(collective, shape),
                            chunks_of(q.elements, q.ranks)};
  for (shape.rank = 0; shape.rank < q.ranks; ++shape.rank)
    stepped.plans.push_back(schedule::make_plan(collective, algorithm, shape));
  return stepped;
}

}  // namespace annulet::cli
