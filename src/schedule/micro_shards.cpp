#include "annulet/schedule/micro_shards.hpp"

#include <algorithm>
#include <limits>

namespace annulet::schedule {
namespace {

void add_pieces(Interval node, Interval owned, std::vector<Interval>& pieces) {
  if (!node.overlaps(owned)) return;
  if (owned.first <= node.first && node.end() <= owned.end()) {
    pieces.push_back(node);
    return;
  }
  const Elements half = first_half(node.count);
  add_pieces({node.first, half}, owned, pieces);
  add_pieces({node.first + half, node.count - half}, owned, pieces);
}

// The division into ranks of 1 to `most` micro-shards that has the fewest pieces, from the last rank to the first.
class Division {
 public:
  Division(int micro_shards, int world, Elements most) : shards_(micro_shards), most_(most) {
    least_.assign(static_cast<std::size_t>(world + 1), std::vector<int>(static_cast<std::size_t>(shards_ + 1), kNone));
    count_ = least_;
    at(least_, world, shards_) = 0;
    for (int rank = world; rank-- > 0;) {
      for (Elements first = rank; first < shards_; ++first) choose(rank, first);
    }
  }

  // Pieces of all ranks; kNone if there is no such division.
  int pieces() { return at(least_, 0, 0); }

  std::vector<Interval> owned() {
    std::vector<Interval> owned;
    Elements first = 0;
    for (int rank = 0; first < shards_; ++rank) {
      owned.push_back({first, at(count_, rank, first)});
      first = owned.back().end();
    }
    return owned;
  }

  static constexpr int kNone = std::numeric_limits<int>::max();

 private:
  using Table = std::vector<std::vector<int>>;  // [rank][its first micro-shard]

  static int& at(Table& table, int rank, Elements first) {
    return table[static_cast<std::size_t>(rank)][static_cast<std::size_t>(first)];
  }

  void choose(int rank, Elements first) {
    for (Elements count = std::min(most_, shards_ - first); count > 0; --count) {
      const int rest = at(least_, rank + 1, first + count);
      if (rest == kNone) continue;
      const int all = rest + static_cast<int>(pieces_of(static_cast<int>(shards_), {first, count}).size());
      if (all < at(least_, rank, first))
        at(least_, rank, first) = all, at(count_, rank, first) = static_cast<int>(count);
    }
  }

  Elements shards_, most_;
  Table least_, count_;
};

void add_passes(Interval node, int slot, Elements most, std::vector<SumPass>& passes) {
  if (node.count <= most) {
    passes.push_back({node, slot, 0});
    return;
  }
  const Elements half = first_half(node.count);
  add_passes({node.first, half}, slot, most, passes);
  add_passes({node.first + half, node.count - half}, slot + 1, most, passes);
  ++passes.back().merges;
}

}  // namespace

std::vector<Interval> pieces_of(int micro_shards, Interval owned) {
  std::vector<Interval> pieces;
  add_pieces({0, micro_shards}, owned, pieces);
  return pieces;
}

std::vector<Interval> owned_micro_shards(int micro_shards, int world) {
  ANNULET_EXPECTS(1 <= world && world <= micro_shards && micro_shards <= kMostMicroShards,
                  "every rank owns a micro-shard");
  for (Elements most = (micro_shards + world - 1) / world;; ++most) {
    Division division(micro_shards, world, most);
    if (division.pieces() <= 2 * world) return division.owned();
  }
}

std::vector<SumPass> sum_passes(std::span<const Interval> pieces, Elements most) {
  ANNULET_EXPECTS(most > 0, "a pass computes something");
  std::vector<SumPass> passes;
  for (std::size_t i = 0; i < pieces.size(); ++i) add_passes(pieces[i], static_cast<int>(i), most, passes);
  return passes;
}

RankSums rank_sums(const SumShape& shape) {
  const std::vector<Interval> owned = owned_micro_shards(shape.micro_shards, shape.world);
  const Elements most = std::ranges::max_element(owned, {}, &Interval::count)->count;
  RankSums sums{owned[static_cast<std::size_t>(shape.rank)], {}, {}, 0};
  sums.pieces = pieces_of(shape.micro_shards, sums.owned);
  sums.passes = sum_passes(sums.pieces, (most + shape.accumulate - 1) / shape.accumulate);
  for (const SumPass& pass : sums.passes) sums.slots = std::max(sums.slots, pass.slot + 1);
  if (shape.in_step) {
    const Elements all = most_passes(shape.micro_shards, shape.world, shape.accumulate);
    sums.passes.insert(sums.passes.begin(), static_cast<std::size_t>(all - std::ssize(sums.passes)),
                       {{sums.owned.first, 0}, 0, 0});
  }
  return sums;
}

Elements most_passes(int micro_shards, int world, Elements accumulate) {
  Elements most = 0;
  for (int rank = 0; rank < world; ++rank) {
    most = std::max<Elements>(most, std::ssize(rank_sums({micro_shards, world, rank, accumulate}).passes));
  }
  return most;
}

}  // namespace annulet::schedule
