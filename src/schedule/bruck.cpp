#include "annulet/schedule/bruck.hpp"

#include <algorithm>
#include <array>
#include <bit>

namespace annulet::schedule {
namespace {

// `count` chunks from `first` on, modulo p: up to the end, and from the beginning.
std::array<Region, 2> chunks_from(const PlanShape& shape, int first, int count) {
  const int p = shape.world, end = first + count;
  return {Region{Place::data, chunk_range(shape.elements, p, first, std::min(end, p))},
          Region{Place::data, chunk_range(shape.elements, p, 0, std::max(end - p, 0))}};
}

}  // namespace

Plan bruck_all_gather(const PlanShape& shape) {
  PlanBuilder builder(shape.rank, shape.world, shape.elements);
  std::vector<StepId> arrived;
  for (int have = 1; have < shape.world; have *= 2) {
    const int more = std::min(have, shape.world - have);
    const int before = (shape.rank - have + shape.world) % shape.world, after = (shape.rank + have) % shape.world;
    for (const Region& part : chunks_from(shape, shape.rank, more)) builder.send(before, part, arrived);
    for (const Region& part : chunks_from(shape, after, more)) arrived.push_back(builder.receive(after, part, {}));
  }
  return std::move(builder).finish();
}

int bruck_steps(int world) { return static_cast<int>(std::bit_width(static_cast<unsigned>(world - 1))); }

Elements bruck_all_gather_sends(const PlanShape& shape) {
  Elements total = 0;
  for (int have = 1; have < shape.world; have *= 2) {
    for (const Region& part : chunks_from(shape, shape.rank, std::min(have, shape.world - have)))
      total += part.interval.count;
  }
  return total;
}

}  // namespace annulet::schedule
