#pragma once
// All-gather of pieces of each rank's own length (the non-zeros of a sparse gradient), forwarded around the ring: in
// step k of p-1 rank r sends the piece of rank r-k to rank r+1 and receives that of rank r-k-1. Data holds the pieces
// in rank order. Rank r sends all but the piece of rank r+1; over all ranks (p-1) times the sum of lengths. With equal
// lengths of m bytes a rank sends (p-1) m, growing with p where a dense all-reduce stays below 2M:
//   (p-1) alpha + (p-1) m beta
// With unequal lengths no rank is done before the longest piece has been around: at most (p-1) (alpha + m_max beta).
#include <span>

#include "annulet/schedule/plan.hpp"

namespace annulet::schedule {

struct SparseShape {
  int rank = 0;
  std::span<const Elements> lengths;  // [rank], the same on all ranks; as many as ranks
};

Plan sparse_all_gather(const SparseShape& shape);

// The piece of rank `owner` in data.
Interval sparse_piece(std::span<const Elements> lengths, int owner);

int sparse_all_gather_steps(int world);
Elements sparse_all_gather_sends(const SparseShape& shape);
Elements sparse_all_gather_total(std::span<const Elements> lengths);

}  // namespace annulet::schedule
