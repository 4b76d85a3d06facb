#include "annulet/parallel/state_memory.hpp"

#include <algorithm>

#include "annulet/schedule/exchange.hpp"
#include "annulet/schedule/layer_uses.hpp"
#include "annulet/schedule/micro_shards.hpp"
#include "annulet/schedule/shards.hpp"
#include "annulet/schedule/slots.hpp"

namespace annulet::parallel {

std::vector<Elements> sizes_of(const nn::Layout& layout) {
  std::vector<Elements> sizes;
  for (const nn::Tensor& tensor : layout.tensors()) sizes.push_back(tensor.count);
  return sizes;
}

std::vector<bool> tied_tensors(const nn::Layout& layout) {
  std::vector<bool> tied;
  for (const nn::Tensor& tensor : layout.tensors()) tied.push_back(tensor.tied);
  return tied;
}

std::optional<std::size_t> tied_layer(const nn::Layout& layout) {
  const auto tied = std::ranges::find_if(layout.tensors(), &nn::Tensor::tied);
  return tied == layout.tensors().end() ? std::nullopt : std::optional(tied->layer);
}

std::vector<schedule::Bucket> buckets_of(const nn::Layout& layout, int stage, Bytes element,
                                         const schedule::SyncOptions& options) {
  if (stage < 3) return schedule::gradient_buckets(sizes_of(layout), element, options);
  std::vector<std::size_t> layers;
  for (const nn::Tensor& tensor : layout.tensors()) layers.push_back(tensor.layer);
  return schedule::layer_buckets(sizes_of(layout), layers);
}

bool keeps_slots(const schedule::SyncOptions& options, int stage, int world, Elements accumulate) {
  if (options.micro_shards == 0) return false;
  return stage < 2 || schedule::most_passes(options.micro_shards, world, accumulate) > 1;
}

StateMemory counted(const StateAccounts& accounts) {
  return {accounts.weights.held(), accounts.gradients.held(),    accounts.optimizer.held(),
          accounts.buckets.held(), accounts.partial_sums.held(), accounts.residual.held()};
}

namespace {

// All ranks' pieces, and what is chosen from.
Bytes sparse_bytes(const nn::Layout& layout, const StateShape& shape, std::span<const schedule::Bucket> buckets) {
  const std::vector<Elements> sizes = sizes_of(layout);
  const Elements largest = sizes.empty() ? 0 : std::ranges::max(sizes);
  Bytes bytes = (shape.element + schedule::kPositionBytes) * largest;
  for (const schedule::Exchange& exchange :
       schedule::gradient_exchanges({buckets, sizes, shape.element, 0}, shape.world, shape.sync.compression)) {
    bytes += exchange.bytes();
  }
  return bytes;
}

}  // namespace

StateMemory planned(const nn::Layout& layout, const StateShape& shape) {
  const auto buckets = buckets_of(layout, shape.stage, shape.element, shape.sync);
  const Bytes all = shape.element * layout.size();
  const Bytes own = shape.element * schedule::total_count(schedule::shard(buckets, shape.world, shape.rank));
  const Bytes values = nn::state_values(shape.optimizer) * (shape.stage >= 1 ? own : all);
  StateMemory memory{
      .weights = shape.stage >= 3 ? own : all, .gradients = shape.stage >= 2 ? own : all, .optimizer = values};
  if (shape.sync.compression.kind == schedule::Compression::Kind::top_k) {
    memory.residual = all;
    memory.buckets += sparse_bytes(layout, shape, buckets);
  }
  if (keeps_slots(shape.sync, shape.stage, shape.world, shape.accumulate)) {
    const auto sums = schedule::rank_sums({shape.sync.micro_shards, shape.world, shape.rank, shape.accumulate});
    memory.partial_sums = sums.slots * all - memory.gradients;
  } else if (shape.stage >= 2) {
    const auto slots = schedule::gradient_slots(buckets, tied_tensors(layout), schedule::kGradientTurns);
    memory.buckets += shape.element * slots.total();
  }
  if (shape.stage >= 3) {
    const auto tied = tied_layer(layout);
    const auto slots = schedule::layer_slots(buckets, schedule::layer_uses(buckets.size(), tied), tied);
    memory.buckets += shape.element * slots.total();
  }
  return memory;
}

}  // namespace annulet::parallel
