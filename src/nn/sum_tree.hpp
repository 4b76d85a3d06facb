#pragma once
// Sums over the rows of a batch that comes in micro-shards: each micro-shard is summed by itself, and the sums are
// added in the fixed tree (base/sum_tree.hpp). A batch without micro-shards is summed row by row.
#include <algorithm>
#include <span>

#include "annulet/base/aligned.hpp"
#include "annulet/base/sum_tree.hpp"

namespace annulet::nn {

// Most sums that wait for each other at once while so many micro-shards are added up.
constexpr std::size_t tree_levels(Elements micro_shards) {
  if (micro_shards <= 1) return 0;
  const Elements half = first_half(micro_shards);
  return std::max(tree_levels(half), 1 + tree_levels(micro_shards - half));
}

// Memory for the sums that wait for others, one for each level of the tree, and for one more.
template <class T>
class TreeScratch {
 public:
  // For up to so many micro-shards, and sums of up to so many values.
  void reserve(Elements micro_shards, Elements values) {
    values_ = values;
    memory_.resize(static_cast<std::size_t>(elements(micro_shards, values)));
  }
  static Elements elements(Elements micro_shards, Elements values) {
    return micro_shards > 0 ? (static_cast<Elements>(tree_levels(micro_shards)) + 1) * values : 0;
  }

  T* extra(Elements elements) { return place(0, elements); }
  T* at(std::size_t level, Elements elements) { return place(level + 1, elements); }

 private:
  T* place(std::size_t number, Elements elements) {
    const std::size_t first = number * static_cast<std::size_t>(values_);
    ANNULET_EXPECTS(elements <= values_ && first < memory_.size(), "memory for micro-shards has been reserved");
    return memory_.data() + first;
  }

  Elements values_ = 0;  // of a sum
  AlignedVector<T> memory_;
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
