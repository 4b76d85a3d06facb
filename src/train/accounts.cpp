#include "accounts.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "annulet/measure/process.hpp"
#include "annulet/schedule/zero.hpp"
#include "annulet/train/agree.hpp"

namespace annulet::train {
namespace {

constexpr const char* kNotTheSame = "measured and predicted would not be of the same thing";

Bytes planned_step(const TrafficAccount& account, int world) {
  const Config& config = account.config;
  Elements planned = 0;
  for (const schedule::Bucket& bucket : account.buckets) {
    const Elements n = bucket.elements.count;
    planned += config.zero == 0 ? schedule::bucket_total(world, n, account.element, sync_options(config))
                                : schedule::zero_traffic(config.zero, n, world, config.accumulate).total();
  }
  return account.element * planned;
}

void require_evaluation_traffic(const comm::Communicator& world, const TrafficAccount& account) {
  const Elements once = schedule::zero_evaluation_traffic(account.config.zero, account.parameters, world.size());
  const double planned = (account.element * once * account.sent.evaluation_passes).as_double();
  const double counted = world.sum(account.sent.evaluations.as_double());
  if (counted == planned) return;
  throw AgreedError(
      describe({fmt::format("{} bytes of weights were sent in evaluations, the formula says {}", counted, planned),
                kNotTheSame, ""}));
}

// Beside each rank's own plan: what all of them hold together.
void require_states(const Summary& summary, const MemoryAccounts& accounts, int world) {
  const schedule::ZeroHeld held = schedule::zero_held(accounts.config.zero, accounts.parameters, world);
  const int values = nn::state_values(optimizer_options(accounts.config));
  const Bytes formula = accounts.element * (held.weights + held.gradients + values * held.optimizer);
  Bytes counted{0};
  for (const MemoryRecord& record : summary.memory) {
    if (!record.state) continue;
    for (const Bytes bytes : record.counted) counted += bytes;
  }
  if (counted == formula) return;
  throw AgreedError(describe({fmt::format("all ranks hold {} bytes of weights, gradients and optimiser state, the "
                                          "formula says {}",
                                          counted.value(), formula.value()),
                              kNotTheSame, ""}));
}

}  // namespace

void add_traffic(Summary& summary, const comm::Communicator& world, const TrafficAccount& account) {
  require_evaluation_traffic(world, account);
  if (account.steps == 0) return;
  summary.planned_wire_per_step = planned_step(account, world.size());
  const std::int64_t mine[] = {account.sent.steps.value(), account.control.value()};
  const auto all = world.all_gather(mine);
  Bytes counted{0};
  for (std::size_t r = 0; r < all.size(); r += 2) {
    summary.wire_by_rank.push_back(Bytes(all[r] / account.steps));
    counted += Bytes(all[r]);
    summary.control_per_step += Bytes(all[r + 1]);
  }
  const Bytes planned = summary.planned_wire_per_step * account.steps;
  if (counted != planned) {
    throw AgreedError(
        describe({fmt::format("{} bytes of gradients and weights were sent in {} steps, the formula says {}",
                              counted.value(), account.steps, planned.value()),
                  kNotTheSame, ""}));
  }
  summary.wire_per_step = Bytes(counted.value() / account.steps);
}

void add_memory(Summary& summary, const comm::Communicator& world, MemoryAccounts accounts) {
  std::vector<std::int64_t> mine{measure::peak_resident().value()};
  for (const MemoryRecord& record : accounts.mine) {
    mine.push_back(record.counted.front().value()), mine.push_back(record.planned.front().value());
    summary.memory.push_back({record.name, record.state, {}, {}});
  }
  const auto all = world.all_gather(std::span<const std::int64_t>(mine));
  for (std::size_t row = 0; row < all.size(); row += mine.size()) {
    summary.peak_rss_by_rank.push_back(Bytes(all[row]));
    summary.peak_rss = std::max(summary.peak_rss, Bytes(all[row]));
    for (std::size_t kind = 0; kind < summary.memory.size(); ++kind) {
      summary.memory[kind].counted.push_back(Bytes(all[row + 1 + 2 * kind]));
      summary.memory[kind].planned.push_back(Bytes(all[row + 2 + 2 * kind]));
    }
  }
  require_states(summary, accounts, world.size());
}

}  // namespace annulet::train
