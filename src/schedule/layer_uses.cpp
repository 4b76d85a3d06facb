#include "annulet/schedule/layer_uses.hpp"

#include "annulet/base/error.hpp"

namespace annulet::schedule {

LayerUses layer_uses(std::size_t layers, std::optional<std::size_t> tied) {
  ANNULET_EXPECTS(!tied || *tied < layers, "the tied layer is one of the layers");
  LayerUses uses;
  const auto add = [&](std::size_t layer) {
    if (layer != tied) uses.layers.push_back(layer);
  };
  if (tied) uses.layers.push_back(*tied);
  for (std::size_t layer = layers; layer-- > 0;) add(layer);
  uses.forward = uses.layers.size();
  if (tied) uses.layers.push_back(*tied);
  for (std::size_t layer = 0; layer < layers; ++layer) add(layer);
  return uses;
}

Slots layer_slots(std::span<const Bucket> layers, const LayerUses& uses, std::optional<std::size_t> tied) {
  std::vector<SlotUse> taken;
  for (const std::size_t layer : uses.layers) {
    taken.push_back({layer, layers[layer].elements.count, layer == tied});
  }
  return plan_slots(taken, kLayerTurns);
}

}  // namespace annulet::schedule
