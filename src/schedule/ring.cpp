#include "annulet/schedule/ring.hpp"

#include <algorithm>

namespace annulet::schedule {
namespace {

int modulo(int a, int p) { return (a % p + p) % p; }

// Both halves of the ring, written into one builder, so that an all-reduce is the one followed by the other.
class Ring {
 public:
  explicit Ring(const RingShape& shape) : shape_(shape), builder_(shape.rank, shape.world, shape.elements) {
    ANNULET_EXPECTS(shape.segment > 0 && shape.slots > 0,
                    "a ring sends segments of at least one element through slots");
    for (int c = 0; c < shape.world; ++c)
      most_segments_ = std::max(most_segments_, segments(chunk_of(c), shape.segment));
    slot_size_ = std::min(shape.segment, shape.elements / shape.world + 1);
    const auto cells = static_cast<std::size_t>(shape.world) * static_cast<std::size_t>(most_segments_);
    ready_.assign(cells, kNoStep);
    sent_.assign(cells, kNoStep);
    slot_free_.assign(static_cast<std::size_t>(shape.slots), kNoStep);
  }

  void reduce_scatter() {
    for (int k = 0; k < shape_.world - 1; ++k) {
      const int outgoing = modulo(shape_.rank - k - 1, shape_.world),
                incoming = modulo(shape_.rank - k - 2, shape_.world);
      for (Elements s = 0; s < most_segments_; ++s) {
        const StepId gone = send(outgoing, s, kNoStep);
        receive_and_add(incoming, s, gone);
      }
    }
  }

  void all_gather() {
    std::vector<StepId> gone(static_cast<std::size_t>(most_segments_), kNoStep);  // [segment]: in the step before
    for (int k = 0; k < shape_.world - 1; ++k) {
      const int outgoing = modulo(shape_.rank - k, shape_.world), incoming = modulo(shape_.rank - k - 1, shape_.world);
      for (Elements s = 0; s < most_segments_; ++s) {
        StepId& last = gone[static_cast<std::size_t>(s)];
        last = send(outgoing, s, last);
        receive_finished(incoming, s);
      }
    }
  }

  Plan finish() { return std::move(builder_).finish(); }

 private:
  Interval chunk_of(int c) const { return chunk(shape_.elements, shape_.world, c); }

  std::size_t cell(int c, Elements s) const {
    return static_cast<std::size_t>(c) * static_cast<std::size_t>(most_segments_) + static_cast<std::size_t>(s);
  }

  // The piece of data that segment s of chunk c is; empty where the chunk has fewer segments.
  Region piece(int c, Elements s) const {
    const Interval whole = chunk_of(c);
    if (s >= segments(whole, shape_.segment)) return {Place::data, {whole.end(), 0}};
    return {Place::data, segment_of(whole, shape_.segment, s)};
  }

  StepId send(int c, Elements s, StepId after) {
    const int right = modulo(shape_.rank + 1, shape_.world);
    return sent_[cell(c, s)] = builder_.send(right, piece(c, s), {ready_[cell(c, s)], after});
  }

  void receive_and_add(int c, Elements s, StepId gone) {
    const Region target = piece(c, s);
    if (target.interval.count == 0) return;
    StepId& slot_free = slot_free_[static_cast<std::size_t>(next_slot_)];
    const Region slot{Place::scratch, {next_slot_ * slot_size_, target.interval.count}};
    const StepId arrived = builder_.receive(left(), slot, {slot_free});
    slot_free = builder_.combine(slot, target, {arrived, gone});
    ready_[cell(c, s)] = slot_free;
    next_slot_ = (next_slot_ + 1) % shape_.slots;
  }

  // What was sent from here during the reduce-scatter must have left before its finished sum overwrites it.
  void receive_finished(int c, Elements s) {
    ready_[cell(c, s)] = builder_.receive(left(), piece(c, s), {sent_[cell(c, s)]});
  }

  int left() const { return modulo(shape_.rank - 1, shape_.world); }

  RingShape shape_;
  PlanBuilder builder_;
  Elements most_segments_ = 0;
  Elements slot_size_ = 0;         // of the longest segment
  std::vector<StepId> ready_;      // [chunk, segment]: the step that made it fit to be sent
  std::vector<StepId> sent_;       // [chunk, segment]: the last send that reads it
  std::vector<StepId> slot_free_;  // [slot]: the combine that emptied it
  int next_slot_ = 0;
};

}  // namespace

Plan ring_reduce_scatter(const RingShape& shape) {
  Ring ring(shape);
  ring.reduce_scatter();
  return ring.finish();
}

Plan ring_all_gather(const RingShape& shape) {
  Ring ring(shape);
  ring.all_gather();
  return ring.finish();
}

Plan ring_all_reduce(const RingShape& shape) {
  Ring ring(shape);
  ring.reduce_scatter();
  ring.all_gather();
  return ring.finish();
}

int ring_all_reduce_steps(int world) { return 2 * (world - 1); }

Elements ring_reduce_scatter_sends(Elements elements, int world, int rank) {
  return elements - chunk(elements, world, rank).count;
}

Elements ring_all_gather_sends(Elements elements, int world, int rank) {
  return elements - chunk(elements, world, modulo(rank + 1, world)).count;
}

Elements ring_all_reduce_sends(Elements elements, int world, int rank) {
  return ring_reduce_scatter_sends(elements, world, rank) + ring_all_gather_sends(elements, world, rank);
}

Elements ring_all_reduce_total(Elements elements, int world) { return Elements{2} * (world - 1) * elements; }

}  // namespace annulet::schedule
