#pragma once
// Micro-shards: the S fixed parts of a global batch whose gradients are summed in one fixed binary tree, whoever
// computes them, so that any number of ranks from 1 to S gets the same bits. A node of n > 1 micro-shards is the sum of
// its first m and of the rest, m the largest power of two below n; so the order of the additions inside a subtree
// depends on its size alone. Ranks own consecutive micro-shards. A *piece* is a largest subtree that a rank owns whole:
// the rank sums it by itself and sends its sum.
#include <span>
#include <vector>

#include "annulet/base/sum_tree.hpp"
#include "annulet/schedule/chunks.hpp"

namespace annulet::schedule {

// The pieces of the owner of some of `micro_shards`, in order.
std::vector<Interval> pieces_of(int micro_shards, Interval owned);

// [rank] what each of `world` ranks owns: at least one each, at most ceil(S / p) micro-shards where that leaves two
// pieces a rank on average, as a reduce-scatter of at most twice the default's bytes needs; else one more, or two.
// Among such divisions one of the fewest pieces. 1 <= world <= micro_shards.
std::vector<Interval> owned_micro_shards(int micro_shards, int world);

// How a rank computes its pieces: some micro-shards at once, their sum into a slot, after which the sums of the last
// two slots become one in the earlier of them, `merges` times. In the end slot i holds piece i.
struct SumPass {
  Interval micro_shards;
  int slot = 0;
  int merges = 0;

  friend bool operator==(const SumPass&, const SumPass&) = default;
};

// `most`: micro-shards of a pass, at least 1; passes are as long as that and the pieces allow.
std::vector<SumPass> sum_passes(std::span<const Interval> pieces, Elements most);

// What one rank of `world` sums by itself, in about as many passes as it accumulates micro-batches, or as it has
// pieces.
struct SumShape {
  int micro_shards = 1;
  int world = 1, rank = 0;
  Elements accumulate = 1;
  bool in_step = false;  // every rank makes as many passes as any, which weights are gathered for: empty ones first
};
struct RankSums {
  Interval owned;
  std::vector<Interval> pieces;
  std::vector<SumPass> passes;
  int slots = 0;  // that the passes use
};
RankSums rank_sums(const SumShape& shape);

// Passes of the rank that makes most. With one, no sum waits for another.
Elements most_passes(int micro_shards, int world, Elements accumulate);

}  // namespace annulet::schedule
