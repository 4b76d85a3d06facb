#include "annulet/schedule/recursive_halving.hpp"

#include <bit>

namespace annulet::schedule {
namespace {

// The ranks that take part are at positions 0 to members - 1: all of them, or the odd ranks of the folded pairs and the
// ranks above the pairs.
struct Fold {
  int members;  // q
  int pairs;    // p - q

  int rank_at(int position) const { return position < pairs ? 2 * position + 1 : position + pairs; }
  int position_of(int rank) const { return rank < 2 * pairs ? rank / 2 : rank - pairs; }
};

Fold no_fold(int world) { return {world, 0}; }

Fold to_a_power_of_two(int world) {
  const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(world)));
  return {power, world - power};
}

// What happens to a rank when its group splits. Halving sends `other` to the target and adds what comes from the
// sources to `mine`; doubling goes backwards, sends `mine` to the sources and receives `other` from the target.
struct Level {
  Interval mine, other;      // of data: what the rank's own half owns, and the other half
  int target;                // position
  std::vector<int> sources;  // positions: the partner; and the one without; or none
  StepId sent = kNoStep;     // the send of halving
};

// From the whole group down to the rank alone.
std::vector<Level> levels_of(Elements elements, int members, int position) {
  std::vector<Level> levels;
  for (int lo = 0, hi = members; hi - lo > 1;) {
    const int half = (hi - lo) / 2, middle = lo + half;
    const bool odd = (hi - lo) % 2 == 1, low = position < middle, without_partner = odd && position == hi - 1;
    const Interval lower = chunk_range(elements, members, lo, middle),
                   upper = chunk_range(elements, members, middle, hi);
    Level level{low ? lower : upper, low ? upper : lower, low ? position + half : position - half, {}};
    if (without_partner) level.target = lo;
    if (!without_partner) level.sources.push_back(level.target);
    if (odd && position == lo) level.sources.push_back(hi - 1);
    levels.push_back(std::move(level));
    (low ? hi : lo) = middle;
  }
  return levels;
}

class Halving {
 public:
  Halving(const PlanShape& shape, Fold fold)
      : shape_(shape),
        fold_(fold),
        builder_(shape.rank, shape.world, shape.elements),
        levels_(levels_of(shape.elements, fold.members, fold.position_of(shape.rank))) {}

  bool is_folded() const { return in_a_pair() && shape_.rank % 2 == 0; }

  // A folded rank gives its vector to the next one and gets the result back.
  void give_and_get_back() {
    const StepId given = builder_.send(shape_.rank + 1, all(), {});
    builder_.receive(shape_.rank + 1, all(), {given});
  }

  void fold_in() {
    if (in_a_pair()) receive_and_add(shape_.rank - 1, all().interval);
  }

  void halve() {
    for (Level& level : levels_) {
      level.sent = builder_.send(fold_.rank_at(level.target), {Place::data, level.other}, {added_});
      for (const int source : level.sources) receive_and_add(fold_.rank_at(source), level.mine);
    }
  }

  void double_again() {
    ready_ = {added_};
    for (auto level = levels_.rbegin(); level != levels_.rend(); ++level) {
      for (const int source : level->sources) send_when_ready(fold_.rank_at(source), level->mine);
      const Region other{Place::data, level->other};
      ready_.push_back(builder_.receive(fold_.rank_at(level->target), other, {level->sent}));
    }
  }

  void fold_out() {
    if (in_a_pair()) send_when_ready(shape_.rank - 1, all().interval);
  }

  Plan finish() { return std::move(builder_).finish(); }

 private:
  bool in_a_pair() const { return shape_.rank < 2 * fold_.pairs; }
  Region all() const { return {Place::data, {0, shape_.elements}}; }

  void receive_and_add(int rank, Interval target) {
    const Region slot{Place::scratch, {scratch_used_, target.count}};
    scratch_used_ += target.count;
    const StepId arrived = builder_.receive(rank, slot, {});
    added_ = builder_.combine(slot, {Place::data, target}, {arrived, added_});
  }

  void send_when_ready(int rank, Interval what) { builder_.send(rank, {Place::data, what}, ready_); }

  PlanShape shape_;
  Fold fold_;
  PlanBuilder builder_;
  std::vector<Level> levels_;
  Elements scratch_used_ = 0;
  StepId added_ = kNoStep;     // the last combine
  std::vector<StepId> ready_;  // all that doubling has gathered
};

Elements sent_by_doubling(Elements elements, int members, int position) {
  Elements total = 0;
  for (const Level& level : levels_of(elements, members, position))
    total += level.mine.count * static_cast<Elements>(level.sources.size());
  return total;
}

}  // namespace

Plan recursive_halving_reduce_scatter(const PlanShape& shape) {
  Halving halving(shape, no_fold(shape.world));
  halving.halve();
  return halving.finish();
}

Plan recursive_doubling_all_gather(const PlanShape& shape) {
  Halving halving(shape, no_fold(shape.world));
  halving.double_again();
  return halving.finish();
}

Plan recursive_halving_doubling_all_reduce(const PlanShape& shape) {
  Halving halving(shape, to_a_power_of_two(shape.world));
  if (halving.is_folded()) {
    halving.give_and_get_back();
    return halving.finish();
  }
  halving.fold_in();
  halving.halve();
  halving.double_again();
  halving.fold_out();
  return halving.finish();
}

int recursive_halving_steps(int world) { return static_cast<int>(std::bit_width(static_cast<unsigned>(world - 1))); }

int recursive_halving_doubling_steps(int world) {
  const Fold fold = to_a_power_of_two(world);
  return 2 * recursive_halving_steps(fold.members) + (fold.pairs > 0 ? 2 : 0);
}

Elements recursive_halving_reduce_scatter_sends(const PlanShape& shape) {
  return shape.elements - chunk(shape.elements, shape.world, shape.rank).count;
}

Elements recursive_doubling_all_gather_sends(const PlanShape& shape) {
  return sent_by_doubling(shape.elements, shape.world, shape.rank);
}

Elements recursive_halving_doubling_all_reduce_sends(const PlanShape& shape) {
  const Fold fold = to_a_power_of_two(shape.world);
  const bool in_a_pair = shape.rank < 2 * fold.pairs;
  if (in_a_pair && shape.rank % 2 == 0) return shape.elements;
  const int position = fold.position_of(shape.rank);
  return shape.elements - chunk(shape.elements, fold.members, position).count +
         sent_by_doubling(shape.elements, fold.members, position) + (in_a_pair ? shape.elements : 0);
}

}  // namespace annulet::schedule
