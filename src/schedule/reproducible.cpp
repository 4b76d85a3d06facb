#include "annulet/schedule/reproducible.hpp"

#include "annulet/schedule/micro_shards.hpp"

namespace annulet::schedule {
namespace {

// [rank] how many pieces it owns.
std::vector<Elements> pieces_by_rank(int micro_shards, int world) {
  std::vector<Elements> counts;
  for (const Interval owned : owned_micro_shards(micro_shards, world)) {
    counts.push_back(std::ssize(pieces_of(micro_shards, owned)));
  }
  return counts;
}

class Reproducible {
 public:
  explicit Reproducible(const ReproducibleShape& shape)
      : shape_(shape.shape),
        micro_shards_(shape.micro_shards),
        owned_(owned_micro_shards(shape.micro_shards, shape.shape.world)),
        pieces_(pieces_by_rank(shape.micro_shards, shape.shape.world)),
        segments_(segments(chunk_of(shape.shape.world - 1), shape.shape.segment)),
        builder_(shape.shape.rank, shape.shape.world, pieces_of_rank(shape.shape.rank) * shape.shape.elements) {
    Elements behind = 0;
    for (int r = 0; r < shape_.world; ++r) {
      scratch_.push_back(behind);
      if (r != shape_.rank) behind += pieces_of_rank(r) * chunk_of(shape_.rank).count;
    }
  }

  void reduce_scatter() {
    for (Elements s = 0; s < segments_; ++s) {
      sent_.emplace_back(index(shape_.world), kNoStep);
      arrived_.assign(index(shape_.world), {});
      for (int k = 1; k < shape_.world; ++k) exchange(s, k);
      next_piece_.assign(index(shape_.world), 0);
      added_.push_back(sum_of({0, micro_shards_}, s).done);
    }
  }

  void all_gather() {
    for (Elements s = 0; s < segments_; ++s) {
      for (int k = 1; k < shape_.world; ++k) {
        const int to = after(k), from = before(k);
        builder_.send(to, own_piece(0, segment(shape_.rank, s)), {added_[index(s)]});
        builder_.receive(from, own_piece(0, segment(from, s)), {sent_[index(s)][index(from)]});
      }
    }
  }

  Plan finish() { return std::move(builder_).finish(); }

 private:
  template <class Integer>
  static std::size_t index(Integer i) {
    return static_cast<std::size_t>(i);
  }

  int after(int k) const { return (shape_.rank + k) % shape_.world; }
  int before(int k) const { return (shape_.rank - k + shape_.world) % shape_.world; }
  Elements pieces_of_rank(int r) const { return pieces_[index(r)]; }
  Interval chunk_of(int r) const { return chunk(shape_.elements, shape_.world, r); }

  // Segment s of chunk r; empty where the chunk has fewer.
  Interval segment(int r, Elements s) const {
    const Interval whole = chunk_of(r);
    return s < segments(whole, shape_.segment) ? segment_of(whole, shape_.segment, s) : Interval{whole.end(), 0};
  }

  Region own_piece(Elements piece, Interval elements) const {
    return {Place::data, {piece * shape_.elements + elements.first, elements.count}};
  }

  // Where a piece of another rank waits.
  Region slot(int r, Elements piece, Elements s) const {
    const Interval own = chunk_of(shape_.rank), part = segment(shape_.rank, s);
    return {Place::scratch, {scratch_[index(r)] + piece * own.count + (part.first - own.first), part.count}};
  }

  void exchange(Elements s, int k) {
    const int to = after(k), from = before(k);
    for (Elements i = 0; i < pieces_of_rank(shape_.rank); ++i) {
      const StepId sent = builder_.send(to, own_piece(i, segment(to, s)), {});
      if (i == 0) sent_.back()[index(to)] = sent;
    }
    for (Elements i = 0; i < pieces_of_rank(from); ++i) {
      arrived_[index(from)].push_back(builder_.receive(from, slot(from, i, s), {}));
    }
  }

  struct Sum {
    Region at;
    StepId done = kNoStep;
    bool own_first = false;  // lies in this rank's first piece
  };

  // Of a node, in the order of the tree; pieces are met from the first to the last.
  Sum sum_of(Interval node, Elements s) {
    for (int r = 0; r < shape_.world; ++r) {
      const Interval owned = owned_[index(r)];
      if (owned.first <= node.first && node.end() <= owned.end()) return piece_of(r, s);
    }
    const Elements half = first_half(node.count);
    const Sum left = sum_of({node.first, half}, s), right = sum_of({node.first + half, node.count - half}, s);
    const auto [from, to] = right.own_first ? std::pair(left, right) : std::pair(right, left);  // a + b = b + a
    return {to.at, builder_.combine(from.at, to.at, {left.done, right.done}), to.own_first};
  }

  Sum piece_of(int r, Elements s) {
    const Elements piece = next_piece_[index(r)]++;
    if (r == shape_.rank) return {own_piece(piece, segment(r, s)), kNoStep, piece == 0};
    const auto& arrived = arrived_[index(r)];
    return {slot(r, piece, s), arrived[index(piece)], false};
  }

  PlanShape shape_;
  Elements micro_shards_;
  std::vector<Interval> owned_;   // [rank]
  std::vector<Elements> pieces_;  // [rank] how many
  Elements segments_;             // of the largest chunk
  PlanBuilder builder_;
  std::vector<Elements> scratch_;             // [rank] where its pieces' slots begin
  std::vector<std::vector<StepId>> sent_;     // [segment][rank]: the send of the first piece to it
  std::vector<std::vector<StepId>> arrived_;  // [rank][piece], of the segment that is being added
  std::vector<Elements> next_piece_;          // [rank] that the tree comes to next
  std::vector<StepId> added_;                 // [segment]
};

}  // namespace

Plan reproducible_reduce_scatter(const ReproducibleShape& shape) {
  Reproducible plan(shape);
  plan.reduce_scatter();
  return plan.finish();
}

Plan reproducible_all_reduce(const ReproducibleShape& shape) {
  Reproducible plan(shape);
  plan.reduce_scatter();
  plan.all_gather();
  return plan.finish();
}

Plan reproducible_plan(Collective collective, const ReproducibleShape& shape) {
  ANNULET_EXPECTS(collective == Collective::all_reduce || collective == Collective::reduce_scatter,
                  "gradients are summed");
  return collective == Collective::all_reduce ? reproducible_all_reduce(shape) : reproducible_reduce_scatter(shape);
}

Elements reproducible_total(Collective collective, int micro_shards, int world, Elements elements) {
  const std::vector<Elements> pieces = pieces_by_rank(micro_shards, world);
  Elements all = 0, total = collective == Collective::all_reduce ? (world - 1) * elements : 0;
  for (const Elements count : pieces) all += count;
  for (int r = 0; r < world; ++r)
    total += (all - pieces[static_cast<std::size_t>(r)]) * chunk(elements, world, r).count;
  return total;
}

}  // namespace annulet::schedule
