#include "annulet/schedule/direct.hpp"

#include <algorithm>

namespace annulet::schedule {
namespace {

// Both halves, written into one builder, so that an all-reduce can hand out one segment while it reduces the next ones.
class Direct {
 public:
  explicit Direct(const PlanShape& shape)
      : shape_(shape),
        segments_(segments(chunk_of(shape.world - 1), shape.segment)),  // the last chunk is the longest
        slot_size_(std::min(shape.segment, chunk_of(shape.rank).count)),
        builder_(shape.rank, shape.world, shape.elements) {
    ANNULET_EXPECTS(shape.segment > 0 && shape.slots > 0, "segments of at least one element arrive in slots");
    slot_free_.assign(index(shape.slots) * index(shape.world), kNoStep);
  }

  void reduce_scatter() {
    for (Elements s = 0; s < segments_; ++s) reduce(s);
  }

  void all_gather() {
    for (Elements s = 0; s < segments_; ++s) gather(s);
  }

  // A sum is handed out while it is still in the caches, once `slots` more segments have been posted.
  void all_reduce() {
    for (Elements s = 0; s < segments_ + shape_.slots; ++s) {
      if (s < segments_) reduce(s);
      if (s >= shape_.slots) gather(s - shape_.slots);
    }
  }

  Plan finish() { return std::move(builder_).finish(); }

 private:
  void reduce(Elements s) {
    sent_.emplace_back(index(shape_.world), kNoStep);
    std::vector<StepId> arrived(index(shape_.world), kNoStep);
    for (int k = 1; k < shape_.world; ++k) {
      sent_.back()[index(after(k))] = builder_.send(after(k), segment(after(k), s), {});
      arrived[index(before(k))] = builder_.receive(before(k), slot(before(k), s), {slot_free(before(k), s)});
    }
    added_.push_back(add_in_rank_order(arrived, s));
  }

  void gather(Elements s) {
    for (int k = 1; k < shape_.world; ++k) {
      builder_.send(after(k), segment(shape_.rank, s), {added_.empty() ? kNoStep : added_[index(s)]});
      builder_.receive(before(k), segment(before(k), s), {sent_.empty() ? kNoStep : sent_[index(s)][index(before(k))]});
    }
  }

  template <class Integer>
  static std::size_t index(Integer i) {
    return static_cast<std::size_t>(i);
  }

  int after(int k) const { return (shape_.rank + k) % shape_.world; }
  int before(int k) const { return (shape_.rank - k + shape_.world) % shape_.world; }

  // The ranks below this one are summed up in the first slot, and then (a + b = b + a) the rest in its own segment.
  StepId add_in_rank_order(const std::vector<StepId>& arrived, Elements s) {
    const Region own = segment(shape_.rank, s);
    StepId sum = shape_.rank > 0 ? arrived[0] : kNoStep;
    for (int r = 1; r < shape_.rank; ++r) {
      slot_free(r, s) = sum = builder_.combine(slot(r, s), slot(0, s), {sum, arrived[index(r)]});
    }
    if (shape_.rank > 0) slot_free(0, s) = sum = builder_.combine(slot(0, s), own, {sum});
    for (int r = shape_.rank + 1; r < shape_.world; ++r) {
      slot_free(r, s) = sum = builder_.combine(slot(r, s), own, {sum, arrived[index(r)]});
    }
    return sum;
  }

  Interval chunk_of(int r) const { return chunk(shape_.elements, shape_.world, r); }

  // Segment s of chunk r; empty where the chunk has fewer.
  Region segment(int r, Elements s) const {
    const Interval whole = chunk_of(r);
    return {Place::data,
            s < segments(whole, shape_.segment) ? segment_of(whole, shape_.segment, s) : Interval{whole.end(), 0}};
  }

  // Where the contribution of rank r to segment s of this rank's chunk waits.
  Region slot(int r, Elements s) const {
    const Elements among = (s % shape_.slots) * (shape_.world - 1) + (r < shape_.rank ? r : r - 1);
    return {Place::scratch, {among * slot_size_, segment(shape_.rank, s).interval.count}};
  }

  // The last step that read it.
  StepId& slot_free(int r, Elements s) { return slot_free_[index(s % shape_.slots) * index(shape_.world) + index(r)]; }

  PlanShape shape_;
  Elements segments_;  // of the longest chunk
  Elements slot_size_;
  PlanBuilder builder_;
  std::vector<StepId> slot_free_;          // [slot of a rank, rank]
  std::vector<std::vector<StepId>> sent_;  // [segment, rank]: the send to it
  std::vector<StepId> added_;              // [segment]
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
  direct.all_reduce();
  return direct.finish();
}

Elements direct_reduce_scatter_sends(const PlanShape& shape) { return shape.elements - own_chunk(shape); }

Elements direct_all_gather_sends(const PlanShape& shape) { return (shape.world - 1) * own_chunk(shape); }

Elements direct_all_reduce_sends(const PlanShape& shape) {
  return direct_reduce_scatter_sends(shape) + direct_all_gather_sends(shape);
}

}  // namespace annulet::schedule
