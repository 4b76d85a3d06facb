#pragma once
// Memory of a rank's model state at the stages of ZeRO: counted where it is held, and planned. With P parameters, the
// rank's shard S of them (chunk r of every bucket), E bytes an element and K values of optimiser state for each:
//            weights  gradients  optimiser  buckets in flight
//   stage 0  E P      E P        E K P      -
//   stage 1  E P      E P        E K S      -
//   stage 2  E P      E S        E K S      the gradients' slots
//   stage 3  E S      E S        E K S      the gradients' slots and those of gathered layers
// In micro-shards (schedule/micro_shards.hpp) a rank has a gradient of E P in each of n slots, n the largest number of
// its sums that wait for each other; what they take beyond the gradients above are the partial sums. At stages 2 and 3
// there are none where every rank makes one pass.
// Top-k compression (stage 0) keeps E P of gradients that have not been sent, and has all ranks' pieces in flight; it
// chooses among the largest tensor's values, E + 4 bytes each.
// (Rajbhandari et al. 2020, section 5; slots: schedule/slots.hpp, schedule/layer_uses.hpp)
#include <optional>
#include <vector>

#include "annulet/base/memory_account.hpp"
#include "annulet/nn/optimizer.hpp"
#include "annulet/schedule/zero.hpp"

namespace annulet::parallel {

struct StateAccounts {
  MemoryAccount weights{"weights"};
  MemoryAccount gradients{"gradients"};
  MemoryAccount optimizer{"optimiser state"};
  MemoryAccount buckets{"buckets in flight"};
  MemoryAccount partial_sums{"partial sums"};
  MemoryAccount residual{"unsent gradients"};
};

struct StateMemory {
  Bytes weights{0}, gradients{0}, optimizer{0}, buckets{0}, partial_sums{0}, residual{0};

  Bytes states() const { return weights + gradients + optimizer + residual; }
  friend bool operator==(const StateMemory&, const StateMemory&) = default;
};

StateMemory counted(const StateAccounts& accounts);

struct StateShape {
  int stage = 0;
  nn::OptimizerOptions optimizer{};
  schedule::SyncOptions sync{};
  int rank = 0, world = 1;
  Bytes element{4};
  Elements accumulate = 1;  // micro-batches, where micro-shards are summed
};

// Whether gradients are summed in slots for micro-shards; otherwise as without micro-shards.
bool keeps_slots(const schedule::SyncOptions& options, int stage, int world, Elements accumulate);

StateMemory planned(const nn::Layout& layout, const StateShape& shape);

// The buckets of a layout's gradients; at stage 3 a bucket is a layer.
std::vector<schedule::Bucket> buckets_of(const nn::Layout& layout, int stage, Bytes element,
                                         const schedule::SyncOptions& options);

// The sizes of a layout's tensors, which of them are tied, and the layer of those.
std::vector<Elements> sizes_of(const nn::Layout& layout);
std::vector<bool> tied_tensors(const nn::Layout& layout);
std::optional<std::size_t> tied_layer(const nn::Layout& layout);

}  // namespace annulet::parallel
