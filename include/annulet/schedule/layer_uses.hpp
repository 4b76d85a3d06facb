#pragma once
// The order in which a model's passes read the weights of its layers, which is the order in which ZeRO 3 gathers them
// (the contract of nn::Progress). Layers are numbered from the output:
//   forward   from the last number, next to the input, to 0; the tied one first, and kept until the end
//   backward  from 0 upwards; the tied one first, until layer 0 is done, and not again
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "annulet/schedule/shards.hpp"
#include "annulet/schedule/slots.hpp"

namespace annulet::schedule {

struct LayerUses {
  std::vector<std::size_t> layers;  // [use] of a forward and a backward pass
  std::size_t forward = 0;          // how many of them the forward pass makes
};

LayerUses layer_uses(std::size_t layers, std::optional<std::size_t> tied);

// The layer that computes and the one that is gathered ahead of it.
constexpr std::size_t kLayerTurns = 2;

// Where gathered layers lie: [use] slots for layers of so many elements, in `layer_uses` order.
Slots layer_slots(std::span<const Bucket> layers, const LayerUses& uses, std::optional<std::size_t> tied);

}  // namespace annulet::schedule
