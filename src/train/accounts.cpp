#include "accounts.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "annulet/measure/process.hpp"
#include "annulet/schedule/micro_shards.hpp"
#include "annulet/schedule/zero.hpp"
#include "annulet/train/agree.hpp"

namespace annulet::train {
namespace {

constexpr const char* kNotTheSame = "measured and predicted would not be of the same thing";

// What all ranks send in a step by the formulas: of gradients, of so many micro-batches from stage 2 on, and of
// weights, which stage 3 gathers for every pass. Micro-shards are summed within the rank and sent once.
Bytes planned_step(const TrafficAccount& account, int world) {
  const Config& config = account.config;
  const auto sync = sync_options(config);
  const Elements passes = config.reproducible > 0 ? schedule::most_passes(config.reproducible, world, config.accumulate)
                                                  : config.accumulate;
  const auto [of_gradients, of_weights] = schedule::zero_traffic(config.zero, account.parameters, world, passes);
  Bytes bytes = account.element * of_weights;
  if (config.zero > 0 && config.reproducible == 0)
    return bytes + schedule::travelling_bytes(account.element, sync.compression) * of_gradients;
  for (const schedule::Exchange& exchange : account.exchanges) {
    bytes += schedule::exchange_total(exchange, world, sync);
  }
  return bytes;
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
  const bool keeps_unsent = sync_options(accounts.config).compression.kind == schedule::Compression::Kind::top_k;
  const Elements unsent = keeps_unsent ? world * accounts.parameters : 0;
  const Bytes formula = accounts.element * (held.weights + held.gradients + values * held.optimizer + unsent);
  Bytes counted{0};
  for (const MemoryRecord& record : summary.memory) {
    if (!record.state) continue;
    for (const Bytes bytes : record.counted) counted += bytes;
  }
  if (counted == formula) return;
  throw AgreedError(describe({fmt::format("all ranks hold {} bytes of weights, gradients, optimiser state and what "
                                          "is unsent, the formula says {}",
                                          counted.value(), formula.value()),
                              kNotTheSame, ""}));
}

}  // namespace

void add_traffic(Summary& summary, const comm::Communicator& world, const TrafficAccount& account) {
  require_evaluation_traffic(world, account);
  if (account.steps == 0) return;
  const Config& config = account.config;
  summary.planned_wire_per_step = planned_step(account, world.size());
  summary.dense_wire_per_step =
      account.element *
      schedule::zero_traffic(config.zero, account.parameters, world.size(), config.accumulate).total();
  for (const schedule::Exchange& exchange : account.exchanges) {
    summary.payload += schedule::payload(exchange, world.size());
  }
  summary.dense_payload = account.element * account.parameters;
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
