#pragma once
// The accounts that a run gives of its bytes: what was counted must be what was planned and what the formula says, on
// every rank and in sum. All are collective, after the last step, and throw AgreedError on all ranks otherwise.
#include <span>

#include "annulet/comm/communicator.hpp"
#include "annulet/schedule/exchange.hpp"
#include "annulet/train/config.hpp"
#include "annulet/train/records.hpp"

namespace annulet::train {

struct TrafficAccount {
  const Config& config;
  std::span<const schedule::Exchange> exchanges;
  Bytes element;
  Elements parameters = 0;
  long steps = 0;
  SentBytes sent;    // by this rank
  Bytes control{0};  // of a step, by this rank
};

// Fills in what a step sends.
void add_traffic(Summary& summary, const comm::Communicator& world, const TrafficAccount& account);

// Brings together what all ranks hold, `mine` having one value of each kind. The model states of all ranks must add up
// to ZeRO's formula.
struct MemoryAccounts {
  const Config& config;
  Elements parameters = 0;
  Bytes element;
  std::vector<MemoryRecord> mine;
};
void add_memory(Summary& summary, const comm::Communicator& world, MemoryAccounts accounts);

}  // namespace annulet::train
