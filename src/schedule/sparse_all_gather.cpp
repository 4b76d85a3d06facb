#include "annulet/schedule/sparse_all_gather.hpp"

#include <numeric>

namespace annulet::schedule {
namespace {

int world_of(std::span<const Elements> lengths) { return static_cast<int>(lengths.size()); }

Elements sum(std::span<const Elements> lengths) { return std::accumulate(lengths.begin(), lengths.end(), Elements{0}); }

}  // namespace

Interval sparse_piece(std::span<const Elements> lengths, int owner) {
  ANNULET_EXPECTS(owner >= 0 && owner < world_of(lengths), "a piece belongs to a rank");
  return {sum(lengths.first(static_cast<std::size_t>(owner))), lengths[static_cast<std::size_t>(owner)]};
}

Plan sparse_all_gather(const SparseShape& shape) {
  const int p = world_of(shape.lengths);
  for (const Elements length : shape.lengths) ANNULET_EXPECTS(length >= 0, "a piece has a length");
  PlanBuilder builder(shape.rank, p, sum(shape.lengths));
  const int right = (shape.rank + 1) % p, left = (shape.rank + p - 1) % p;
  StepId arrived = kNoStep;
  for (int k = 0; k < p - 1; ++k) {
    const int outgoing = (shape.rank + p - k) % p, incoming = (left + p - k) % p;
    builder.send(right, {Place::data, sparse_piece(shape.lengths, outgoing)}, {arrived});
    arrived = builder.receive(left, {Place::data, sparse_piece(shape.lengths, incoming)}, {});
  }
  return std::move(builder).finish();
}

int sparse_all_gather_steps(int world) { return world - 1; }

Elements sparse_all_gather_sends(const SparseShape& shape) {
  const int right = (shape.rank + 1) % world_of(shape.lengths);
  return sum(shape.lengths) - shape.lengths[static_cast<std::size_t>(right)];
}

Elements sparse_all_gather_total(std::span<const Elements> lengths) {
  return Elements{world_of(lengths) - 1} * sum(lengths);
}

}  // namespace annulet::schedule
