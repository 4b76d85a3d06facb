#pragma once
// Sums over the rows of a batch that comes in micro-shards: each micro-shard is summed by itself, and the sums are
// added in the fixed tree (base/sum_tree.hpp). A batch without micro-shards is summed row by row.
#include <algorithm>
#include <bit>
#include <span>
#include <vector>

#include "annulet/base/aligned.hpp"
#include "annulet/base/sum_tree.hpp"

namespace annulet::nn {

// Levels of a tree of kMostMicroShards.
constexpr std::size_t kMostTreeLevels = std::bit_width(static_cast<std::uint64_t>(kMostMicroShards));

// Memory for the sums that wait for others: one for each level of the tree, kept for the next pass.
template <class T>
class TreeScratch {
 public:
  T* at(std::size_t level, Elements elements) {
    while (levels_.size() <= level) levels_.emplace_back();
    AlignedVector<T>& memory = levels_[level];
    memory.resize(std::max(memory.size(), static_cast<std::size_t>(elements)));
    return memory.data();
  }

 private:
  std::vector<AlignedVector<T>> levels_;
};

// What a tree of sums of `elements` values works with.
template <class T>
struct SumTree {
  Elements rows_of_sample;
  Elements elements;
  TreeScratch<T>& scratch;

  // sum(row, rows, to) writes the sum over some rows to `to`. Returns the row after the last one.
  template <class Sum>
  Elements add_up(std::span<const Elements> samples, Elements row, T* to, const Sum& sum, std::size_t level = 0) const {
    if (samples.size() == 1) {
      const Elements rows = samples.front() * rows_of_sample;
      sum(row, rows, to);
      return row + rows;
    }
    const auto half = static_cast<std::size_t>(first_half(std::ssize(samples)));
    const Elements middle = add_up(samples.first(half), row, to, sum, level);
    T* const right = scratch.at(level, elements);
    const Elements end = add_up(samples.subspan(half), middle, right, sum, level + 1);
    for (Elements i = 0; i < elements; ++i) to[i] += right[i];
    return end;
  }
};

}  // namespace annulet::nn
