#pragma once
// Memory that is used in turns (ZeRO 2 and 3): of many buckets only a few are in use at once, and each has one slot,
// always the same, so that an operation's memory stands when it is declared. Uses follow each other in a known order,
// again and again. With `turns` slots, the i-th of those that come and go has slot i mod turns; a bucket that stays
// while others come and go (that of a tied tensor) has a slot of its own. A slot is as large as its largest use.
#include <cstddef>
#include <span>
#include <vector>

#include "annulet/schedule/buckets.hpp"

namespace annulet::schedule {

struct SlotUse {
  std::size_t bucket = 0;
  Elements elements = 0;
  bool stays = false;
};

struct Slots {
  std::vector<std::size_t> of_use;  // [use]
  std::vector<Elements> sizes;      // [slot]

  Elements total() const;
};

// `turns` at least 1; no more slots than are used.
Slots plan_slots(std::span<const SlotUse> uses, std::size_t turns);

// One that backward writes and two under way: backward may begin a bucket while the last tensors of the one before are
// not final yet, so that fewer than two would not do.
constexpr std::size_t kGradientTurns = 3;

// Where backward writes the gradients of buckets, which it begins in order, but for those that hold a tied tensor.
// tied[tensor]: whether a tensor is.
Slots gradient_slots(std::span<const Bucket> buckets, const std::vector<bool>& tied, std::size_t turns);

}  // namespace annulet::schedule
