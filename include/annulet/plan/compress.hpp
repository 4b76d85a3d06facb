#pragma once
// When compressing a gradient pays. Dense gradients are added on the way: a ring all-reduce, 2 (p-1)/p M from each
// rank. Sparse ones (1 value in 1/density, with its position) cannot be: an all-gather, (p-1) payload from each rank.
// So
//   sparse / dense on the wire = p payload / (2 M),  equal at p = 2 M / payload
// With density d, a payload of d n (value + index) bits against M of n dense bits: p = 2 dense / (d (value + index)).
// Narrow types stay dense: they are added on the way, and save what they are narrower.
#include <optional>
#include <string>
#include <vector>

#include "annulet/cost/machine.hpp"
#include "annulet/plan/answer.hpp"

namespace annulet::plan {

struct CompressQuestion {
  Elements elements = 0;  // of the gradient
  cost::Machine machine{};
  std::vector<int> ranks{2, 4, 8, 16, 32, 64};
  std::vector<double> densities{1.0 / 16};
  int dense_bits = 32;               // of a value, uncompressed
  int value_bits = 32;               // of a value that is sent with its position
  int index_bits = 32;               // of the position
  std::vector<int> narrow_bits{16};  // of dense types that are tried instead
  std::string machine_name{};
  std::string vector_name{};
};

// Two tables: `compress`, bytes on the wire and time by ranks and kind of gradient; `break_even`, the number of ranks
// from which sparse gradients no longer pay. Throws InputError for a question without ranks, densities outside (0, 1],
// or widths of no bits.
Answer plan_compress(const CompressQuestion& question);

// 2 dense / (density (value + index)), the ranks at which both put the same bytes on the wire.
double break_even_ranks(double density, int dense_bits, int value_bits, int index_bits);

// The ranks with which gathering the payload of each puts as many bytes on the wire as all-reducing `dense` bytes does;
// and the least number, up to a million, with which it takes at least as long.
double break_even_ranks(Bytes payload, Bytes dense);
std::optional<int> slower_from_ranks(Bytes payload, Bytes dense, const cost::Machine& machine);

}  // namespace annulet::plan
