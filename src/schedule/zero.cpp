#include "annulet/schedule/zero.hpp"

#include <algorithm>

#include "annulet/schedule/reproducible.hpp"

namespace annulet::schedule {

Collective gradient_collective(int stage) {
  ANNULET_EXPECTS(stage >= 0 && stage < kZeroStages, "ZeRO has stages 0 to 3");
  return stage == 0 ? Collective::all_reduce : Collective::reduce_scatter;
}

Plan bucket_plan(Collective collective, int rank, int world, Elements elements, Bytes element,
                 const SyncOptions& options) {
  if (collective == Collective::all_reduce) return bucket_plan(rank, world, elements, element, options);
  const Elements segment = std::max<Elements>(1, options.segment.value() / element.value());
  const PlanShape shape{rank, world, elements, segment, options.slots};
  const bool sums = collective == Collective::reduce_scatter;
  if (options.micro_shards > 0 && sums) return reproducible_reduce_scatter({shape, options.micro_shards});
  return make_plan(collective, Algorithm::ring, shape);
}

ZeroTraffic zero_traffic(int stage, Elements parameters, int world, Elements micro_batches) {
  const Elements once = (world - 1) * parameters, k = micro_batches;
  switch (stage) {
    case 0:
      return {2 * once, 0};
    case 1:
      return {once, once};
    case 2:
      return {k * once, once};
    default:
      ANNULET_EXPECTS(stage == 3, "ZeRO has stages 0 to 3");
      return {k * once, 2 * k * once};
  }
}

Elements bucket_traffic(int stage, Elements elements, int world, Elements micro_batches, Bytes element,
                        const SyncOptions& options) {
  if (stage == 0) return bucket_total(world, elements, element, options);
  ZeroTraffic traffic = zero_traffic(stage, elements, world, micro_batches);
  if (options.micro_shards > 0) {
    traffic.gradients = reproducible_total(Collective::reduce_scatter, options.micro_shards, world, elements);
  }
  return traffic.total();
}

Elements bucket_sends(Collective collective, int rank, int world, Elements elements, Bytes element,
                      const SyncOptions& options) {
  if (collective == Collective::all_reduce) return bucket_sends(rank, world, elements, element, options);
  if (options.micro_shards > 0) {
    return sent_elements(bucket_plan(collective, rank, world, elements, element, options));
  }
  return planned_sends(collective, Algorithm::ring, {.rank = rank, .world = world, .elements = elements});
}

Elements zero_evaluation_traffic(int stage, Elements parameters, int world) {
  return stage == 3 ? (world - 1) * parameters : 0;
}

}  // namespace annulet::schedule
