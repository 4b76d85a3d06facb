#include "annulet/schedule/layer_uses.hpp"

#include <gmock/gmock.h>

#include "annulet/base/error.hpp"

namespace annulet::schedule {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(LayerUses, GoThroughTheLayersAndBack) {
  const LayerUses uses = layer_uses(3, std::nullopt);
  EXPECT_THAT(uses.layers, ElementsAre(2, 1, 0, 0, 1, 2));
  EXPECT_EQ(uses.forward, 3U);
  EXPECT_THAT(layer_uses(0, std::nullopt).layers, IsEmpty());
}

TEST(LayerUses, BeginBothPassesWithTheTiedLayer) {
  const LayerUses uses = layer_uses(4, 3);
  EXPECT_THAT(uses.layers, ElementsAre(3, 2, 1, 0, 3, 0, 1, 2));
  EXPECT_EQ(uses.forward, 4U);
  EXPECT_THROW(layer_uses(4, 4), ContractError);
}

// The end of one pass and the beginning of the next take turns too, so that the next is gathered while one computes.
TEST(LayerSlots, AreTwoInTurnsAndOneForTheTiedLayer) {
  const std::vector<Bucket> layers{{{0, 10}, 0, 1}, {{10, 20}, 1, 2}, {{30, 30}, 2, 3}, {{60, 99}, 3, 4}};
  const LayerUses uses = layer_uses(4, 3);
  const Slots tied = layer_slots(layers, uses, 3);
  EXPECT_THAT(tied.of_use, ElementsAre(2, 0, 1, 0, 2, 1, 0, 1));
  EXPECT_THAT(tied.sizes, ElementsAre(30, 30, 99));
  const Slots untied = layer_slots(layers, layer_uses(4, std::nullopt), std::nullopt);
  EXPECT_THAT(untied.of_use, ElementsAre(0, 1, 0, 1, 0, 1, 0, 1));
  EXPECT_THAT(untied.sizes, ElementsAre(99, 99));
}

}  // namespace
}  // namespace annulet::schedule
