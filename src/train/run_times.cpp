#include "run_times.hpp"

#include <algorithm>

#include "annulet/base/statistics.hpp"

namespace annulet::train {
namespace {

template <class Value>
std::vector<Value> without_first(std::vector<Value> values, std::size_t skip = 5) {
  if (values.size() > skip) values.erase(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(skip));
  return values;
}

}  // namespace

void add_times(Summary& summary, const comm::Communicator& world, const RunTimes& times) {
  std::vector<double> totals, forward, exposed, pack, unpack;
  std::vector<Seconds> gradients, weights, control;
  for (const StepRecord& record : times.records) {
    pack.push_back(record.seconds.pack.count()), unpack.push_back(record.seconds.unpack.count());
    totals.push_back(record.seconds.total.count()), exposed.push_back(record.seconds.exposed.count());
    forward.push_back(record.seconds.forward.count());
    gradients.push_back(record.seconds.gradients()), weights.push_back(record.seconds.gather);
    control.push_back(record.seconds.control);
  }
  if (totals.empty()) return;
  summary.median_step = Seconds(world.maximum(*median(without_first(totals))));
  summary.median_forward = Seconds(world.maximum(*median(without_first(forward))));
  summary.median_exposed = Seconds(*median(without_first(exposed)));
  summary.exposed = {*median(without_first(gradients)), *median(without_first(weights)),
                     *median(without_first(control))};
  if (times.sparse) {
    summary.median_pack = Seconds(*median(without_first(pack)));
    summary.median_unpack = Seconds(*median(without_first(unpack)));
  }
  summary.samples_per_second = static_cast<double>(times.samples) / summary.median_step->count();
  summary.mfu = (summary.flops_per_step / *summary.median_step) / summary.peak;
  const Flops done = summary.flops_per_step + times.recomputation;
  summary.hfu = (done / *summary.median_step) / summary.peak;
}

void add_reproducible_cost(Summary& summary, const comm::Communicator& world, const ReproducibleCost& mine) {
  const double seconds[] = {mine.in_micro_shards.count(), mine.by_default.count()};
  const auto all = world.all_gather(seconds);
  ReproducibleCost worst = mine;
  for (std::size_t r = 0; r < all.size(); r += std::size(seconds)) {
    const ReproducibleCost cost{Seconds(all[r]), Seconds(all[r + 1])};
    if (cost.in_micro_shards / cost.by_default > worst.in_micro_shards / worst.by_default) worst = cost;
  }
  summary.reproducible_cost = worst;
}

void add_communication(Summary& summary, const std::vector<StepRecord>& records,
                       const std::vector<StepCommunication>& sampled) {
  if (sampled.empty() || summary.ranks == 1) return;
  summary.communication = without_first(sampled);
  std::vector<Seconds> measured, predicted, skew, exposed;
  for (const StepCommunication& step : summary.communication) {
    measured.push_back(step.measured), predicted.push_back(step.predicted), skew.push_back(step.skew);
  }
  summary.all_reduce_measured = median(measured), summary.all_reduce_predicted = median(predicted);
  summary.median_skew = median(skew);
  for (const StepRecord& record : records) exposed.push_back(record.seconds.gradients());
  summary.hidden_fraction = std::max(0.0, 1 - *median(without_first(exposed)) / *summary.all_reduce_measured);
}

}  // namespace annulet::train
