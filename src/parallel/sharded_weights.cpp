// Stage 3 of ZeRO: every rank keeps its shard of the weights. A bucket is a layer, gathered into a slot just before a
// pass reads it and given up when the pass is done with it; while one computes the next is on its way. What a pass has
// not asked for lies nowhere: its tensors' places are null.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "annulet/base/aligned.hpp"
#include "annulet/base/error.hpp"
#include "annulet/parallel/state_memory.hpp"
#include "annulet/parallel/weight_sync.hpp"
#include "annulet/schedule/layer_uses.hpp"
#include "part.hpp"

namespace annulet::parallel {
namespace {

template <class T>
class ShardedWeights final : public WeightSync<T> {
 public:
  ShardedWeights(collectives::Engine& engine, const nn::Layout& layout, std::span<const schedule::Bucket> layers,
                 const ShardingOptions& options);

  nn::TensorValues<const T> values() const override { return nn::TensorValues<const T>::at_places(places_); }
  schedule::Interval kept(std::size_t bucket) const override { return shard_[bucket]; }
  std::span<T> kept_values(std::size_t bucket) override { return kept_of_[bucket]; }

  void begin(Passes passes) override;
  void needed(std::size_t layer) override;
  void done(std::size_t layer) override;
  void settle() override;
  void visit(const typename WeightSync<T>::Visitor& visitor) override;
  void assign(schedule::Interval elements, std::span<const T> values) override;
  void spoil() override { spoilt_ = true; }
  void restore() override { spoilt_ = false; }

  Bytes launched_bytes() const override { return launched_; }
  Seconds waited() const override { return waited_; }

 private:
  static constexpr std::size_t kNobody = static_cast<std::size_t>(-1);

  void declare(const SyncOptions& options);
  std::span<T> gathered(std::size_t use);
  void launch(std::size_t use);
  void launch_ahead();
  void wait(std::size_t use);
  void place(std::size_t use);

  collectives::Engine& engine_;
  const nn::Layout& layout_;
  std::vector<schedule::Bucket> layers_;
  std::vector<schedule::Interval> shard_;  // [layer]
  Freed freed_;
  schedule::LayerUses uses_;
  std::vector<std::size_t> slot_of_;  // [use]
  std::vector<AlignedVector<T>> slots_;
  std::vector<std::size_t> occupants_;                         // [slot]: the use that has it, or kNobody
  std::vector<const T*> places_;                               // [tensor]: null while its layer is not gathered
  AlignedVector<T> kept_;                                      // the shard: this rank's chunks, one after the other
  std::vector<std::span<T>> kept_of_;                          // [layer]
  std::vector<collectives::OperationId> gathers_;              // [use]
  std::vector<Bytes> wire_;                                    // [use]: what this rank's plan sends
  std::size_t next_launched_ = 0, next_needed_ = 0, end_ = 0;  // uses of the passes that have begun
  bool spoilt_ = false;
  Bytes launched_{0};
  Seconds waited_{0};
};

template <class T>
ShardedWeights<T>::ShardedWeights(collectives::Engine& engine, const nn::Layout& layout,
                                  std::span<const schedule::Bucket> layers, const ShardingOptions& options)
    : engine_(engine),
      layout_(layout),
      layers_(layers.begin(), layers.end()),
      shard_(schedule::shard(layers, engine.world(), engine.rank())),
      freed_(options.freed),
      uses_(schedule::layer_uses(layers.size(), tied_layer(layout))),
      places_(layout.tensors().size()),
      kept_(static_cast<std::size_t>(schedule::total_count(shard_)), options.accounts.weights) {
  const schedule::Slots plan = schedule::layer_slots(layers, uses_, tied_layer(layout));
  slot_of_ = plan.of_use;
  for (const Elements size : plan.sizes) slots_.emplace_back(static_cast<std::size_t>(size), options.accounts.buckets);
  occupants_.assign(slots_.size(), kNobody);
  for (Elements first = 0; const schedule::Interval& own : shard_) {
    kept_of_.push_back(part(std::span(kept_), {first, own.count}));
    first += own.count;
  }
  declare(options.sync);
}

template <class T>
void ShardedWeights<T>::declare(const SyncOptions& options) {
  for (std::size_t use = 0; use < uses_.layers.size(); ++use) {
    const std::size_t layer = uses_.layers[use];
    auto plan = std::make_shared<schedule::Plan>(schedule::bucket_plan(schedule::Collective::all_gather, engine_.rank(),
                                                                       engine_.world(), layers_[layer].elements.count,
                                                                       Bytes(sizeof(T)), options));
    wire_.push_back(Bytes(sizeof(T)) * schedule::sent_elements(*plan));
    gathers_.push_back(engine_.declare(
        {fmt::format("weights of layer {} for {}", layer, use < uses_.forward ? "forward" : "backward"),
         comm::Purpose::weights, collectives::sum_of<T>(), std::move(plan), std::as_writable_bytes(gathered(use))}));
  }
}

template <class T>
std::span<T> ShardedWeights<T>::gathered(std::size_t use) {
  return part(std::span(slots_[slot_of_[use]]), {0, layers_[uses_.layers[use]].elements.count});
}

template <class T>
void ShardedWeights<T>::begin(Passes passes) {
  ANNULET_EXPECTS(std::ranges::count(occupants_, kNobody) == std::ssize(occupants_),
                  "passes have given up all layers before others begin");
  next_launched_ = next_needed_ = 0;
  end_ = passes == Passes::train ? uses_.layers.size() : uses_.forward;
  launch_ahead();
}

template <class T>
void ShardedWeights<T>::launch(std::size_t use) {
  const std::size_t layer = uses_.layers[use];
  occupants_[slot_of_[use]] = use;
  const Elements offset = shard_[layer].first - layers_[layer].elements.first;
  std::ranges::copy(kept_of_[layer], part(gathered(use), {offset, shard_[layer].count}).begin());
  engine_.launch(gathers_[use]);
  launched_ += wire_[use];
}

// In the order of the uses, the same on all ranks, as far as there is room.
template <class T>
void ShardedWeights<T>::launch_ahead() {
  while (next_launched_ < end_ && occupants_[slot_of_[next_launched_]] == kNobody) launch(next_launched_++);
  engine_.poll();
}

template <class T>
void ShardedWeights<T>::needed(std::size_t layer) {
  ANNULET_EXPECTS(next_needed_ < next_launched_ && uses_.layers[next_needed_] == layer,
                  "passes ask for layers in the order that was planned");
  wait(next_needed_);
  place(next_needed_++);
}

template <class T>
void ShardedWeights<T>::wait(std::size_t use) {
  if (engine_.finished(gathers_[use])) return;
  const Instant began = Clock::now();
  engine_.wait(gathers_[use]);
  waited_ += Clock::now() - began;
}

template <class T>
void ShardedWeights<T>::place(std::size_t use) {
  const schedule::Bucket& layer = layers_[uses_.layers[use]];
  const std::span<T> values = gathered(use);
  for (std::size_t t = layer.first_tensor; t < layer.end_tensor; ++t) {
    const Elements offset = layout_.tensors()[t].first - layer.elements.first;
    places_[t] = values.data() + offset;
    if (!spoilt_ || layout_.tensors()[t].count == 0) continue;
    values[static_cast<std::size_t>(offset)] = std::numeric_limits<T>::quiet_NaN();
  }
}

template <class T>
void ShardedWeights<T>::done(std::size_t layer) {
  const auto use =
      std::ranges::find_if(occupants_, [&](std::size_t u) { return u < next_needed_ && uses_.layers[u] == layer; });
  ANNULET_EXPECTS(use != occupants_.end(), "a pass is done with what it asked for");
  if (freed_ == Freed::spoilt) std::ranges::fill(gathered(*use), std::numeric_limits<T>::quiet_NaN());
  std::fill_n(places_.begin() + static_cast<std::ptrdiff_t>(layers_[layer].first_tensor),
              layers_[layer].end_tensor - layers_[layer].first_tensor, nullptr);
  *use = kNobody;
  launch_ahead();
}

template <class T>
void ShardedWeights<T>::settle() {
  for (const std::size_t use : occupants_) {
    if (use != kNobody) wait(use);
  }
}

// Layers lie in layout order; each is gathered where forward would.
template <class T>
void ShardedWeights<T>::visit(const typename WeightSync<T>::Visitor& visitor) {
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    const auto use = static_cast<std::size_t>(std::ranges::find(uses_.layers, layer) - uses_.layers.begin());
    ANNULET_EXPECTS(occupants_[slot_of_[use]] == kNobody, "weights are looked at between passes");
    launch(use);
    engine_.wait(gathers_[use]);
    visitor(layers_[layer].elements, gathered(use));
    occupants_[slot_of_[use]] = kNobody;
  }
}

template <class T>
void ShardedWeights<T>::assign(schedule::Interval elements, std::span<const T> values) {
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    const Elements first = std::max(elements.first, shard_[layer].first);
    const Elements count = std::min(elements.end(), shard_[layer].end()) - first;
    if (count <= 0) continue;
    std::ranges::copy(part(values, {first - elements.first, count}),
                      part(kept_of_[layer], {first - shard_[layer].first, count}).begin());
  }
}

}  // namespace

template <class T>
std::unique_ptr<WeightSync<T>> make_sharded_weights(collectives::Engine& engine, const nn::Layout& layout,
                                                    std::span<const schedule::Bucket> layers,
                                                    const ShardingOptions& options) {
  return std::make_unique<ShardedWeights<T>>(engine, layout, layers, options);
}

template std::unique_ptr<WeightSync<float>> make_sharded_weights(collectives::Engine&, const nn::Layout&,
                                                                 std::span<const schedule::Bucket>,
                                                                 const ShardingOptions&);
template std::unique_ptr<WeightSync<double>> make_sharded_weights(collectives::Engine&, const nn::Layout&,
                                                                  std::span<const schedule::Bucket>,
                                                                  const ShardingOptions&);

}  // namespace annulet::parallel
