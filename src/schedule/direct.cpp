#include "annulet/schedule/direct.hpp"

namespace annulet::schedule {
namespace {

// Both halves, written into one builder, so that an all-reduce is the one followed by the other.
class Direct {
 public:
  explicit Direct(const PlanShape& shape)
      : shape_(shape),
        builder_(shape.rank, shape.world, shape.elements),
        sent_(static_cast<std::size_t>(shape.world), kNoStep) {}

  void reduce_scatter() {
    std::vector<StepId> arrived(static_cast<std::size_t>(shape_.world), kNoStep);
    for (int k = 1; k < shape_.world; ++k) {
      const int to = (shape_.rank + k) % shape_.world, from = (shape_.rank - k + shape_.world) % shape_.world;
      sent_[index(to)] = builder_.send(to, chunk_of(to), {});
      arrived[index(from)] = builder_.receive(from, slot(from), {});
    }
    add_in_rank_order(arrived);
  }

  void all_gather() {
    for (int k = 1; k < shape_.world; ++k) {
      const int to = (shape_.rank + k) % shape_.world, from = (shape_.rank - k + shape_.world) % shape_.world;
      builder_.send(to, chunk_of(shape_.rank), {added_});
      builder_.receive(from, chunk_of(from), {sent_[index(from)]});
    }
  }

  Plan finish() { return std::move(builder_).finish(); }

 private:
  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }

  // The ranks below this one are summed up in the first slot, and then (a + b = b + a) the rest in its own chunk.
  void add_in_rank_order(const std::vector<StepId>& arrived) {
    const Region own = chunk_of(shape_.rank);
    StepId below = shape_.rank > 0 ? arrived[0] : kNoStep;
    for (int r = 1; r < shape_.rank; ++r) below = builder_.combine(slot(r), slot(0), {below, arrived[index(r)]});
    if (shape_.rank > 0) added_ = builder_.combine(slot(0), own, {below});
    for (int r = shape_.rank + 1; r < shape_.world; ++r)
      added_ = builder_.combine(slot(r), own, {added_, arrived[index(r)]});
  }

  Region chunk_of(int r) const { return {Place::data, chunk(shape_.elements, shape_.world, r)}; }

  // Where the contribution of rank r to this rank's chunk waits.
  Region slot(int r) const {
    const Elements size = chunk_of(shape_.rank).interval.count;
    return {Place::scratch, {(r < shape_.rank ? r : r - 1) * size, size}};
  }

  PlanShape shape_;
  PlanBuilder builder_;
  std::vector<StepId> sent_;  // [rank]: the send of its chunk to it
  StepId added_ = kNoStep;
};

Elements own_chunk(const PlanShape& shape) { return chunk(shape.elements, shape.world, shape.rank).count; }

}  // namespace

Plan direct_reduce_scatter(const PlanShape& shape) {
  Direct direct(shape);
  direct.reduce_scatter();
  return direct.finish();
}

Plan direct_all_gather(const PlanShape& shape) {
  Direct direct(shape);
  direct.all_gather();
  return direct.finish();
}

Plan direct_all_reduce(const PlanShape& shape) {
  Direct direct(shape);
  direct.reduce_scatter();
  direct.all_gather();
  return direct.finish();
}

Elements direct_reduce_scatter_sends(const PlanShape& shape) { return shape.elements - own_chunk(shape); }

Elements direct_all_gather_sends(const PlanShape& shape) { return (shape.world - 1) * own_chunk(shape); }

Elements direct_all_reduce_sends(const PlanShape& shape) {
  return direct_reduce_scatter_sends(shape) + direct_all_gather_sends(shape);
}

}  // namespace annulet::schedule
