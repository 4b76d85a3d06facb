#include "annulet/schedule/slots.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "annulet/base/error.hpp"

namespace annulet::schedule {

Elements Slots::total() const { return std::accumulate(sizes.begin(), sizes.end(), Elements{0}); }

Slots plan_slots(std::span<const SlotUse> uses, std::size_t turns) {
  ANNULET_EXPECTS(turns > 0, "there is a slot to take turns in");
  const auto come_and_go =
      static_cast<std::size_t>(std::ranges::count_if(uses, [](const SlotUse& use) { return !use.stays; }));
  Slots slots{{}, std::vector<Elements>(std::min(turns, come_and_go))};
  std::map<std::size_t, std::size_t> own;  // [bucket]
  std::size_t turn = 0;
  for (const SlotUse& use : uses) {
    const std::size_t slot = use.stays ? own.try_emplace(use.bucket, slots.sizes.size()).first->second : turn++ % turns;
    slots.sizes.resize(std::max(slots.sizes.size(), slot + 1));
    slots.sizes[slot] = std::max(slots.sizes[slot], use.elements);
    slots.of_use.push_back(slot);
  }
  return slots;
}

Slots gradient_slots(std::span<const Bucket> buckets, const std::vector<bool>& tied, std::size_t turns) {
  std::vector<SlotUse> uses;
  for (const Bucket& bucket : buckets) {
    ANNULET_EXPECTS(bucket.end_tensor <= tied.size(), "it is known of every tensor whether it is tied");
    SlotUse use{uses.size(), bucket.elements.count};
    for (std::size_t t = bucket.first_tensor; t < bucket.end_tensor; ++t) use.stays = use.stays || tied[t];
    uses.push_back(use);
  }
  return plan_slots(uses, turns);
}

}  // namespace annulet::schedule
