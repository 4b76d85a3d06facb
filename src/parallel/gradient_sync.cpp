#include "annulet/parallel/gradient_sync.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "annulet/base/error.hpp"
#include "annulet/base/thread_clock.hpp"
#include "annulet/nn/optimizer.hpp"
#include "annulet/schedule/shards.hpp"
#include "part.hpp"

namespace annulet::parallel {
namespace {

template <class T>
collectives::ElementType element_of(const schedule::Compression& compression) {
  if (compression.kind == schedule::Compression::Kind::none) return collectives::sum_of<T>();
  ANNULET_EXPECTS(compression.kind == schedule::Compression::Kind::bfloat16, "top-k sends no sums");
  return collectives::over_bfloat16(collectives::sum_of<T>());
}

auto rounding(const collectives::ElementType& element, schedule::Interval elements) {
  return [element, elements](std::span<std::byte> data) {
    const auto size = static_cast<Elements>(element.size);
    collectives::round_through_wire(element, part(data, {elements.first * size, elements.count * size}));
  };
}

}  // namespace

void GradientInstants::pulse(Seconds now) {
  if (computed) {
    const Seconds since = now - *computed;
    between += since, squares_between += since.count() * since.count();
  }
  computed = now;
}

template <class T>
GradientSync<T>::GradientSync(collectives::Engine& engine, const nn::Layout& layout, std::span<T> gradients,
                              const SyncOptions& options)
    : GradientSync(engine, layout, gradients, options, schedule::Collective::all_reduce) {}

template <class T>
GradientSync<T>::GradientSync(collectives::Engine& engine, const nn::Layout& layout, std::span<T> gradients,
                              const SyncOptions& options, schedule::Collective collective)
    : GradientSync(engine, schedule::gradient_buckets(sizes_of(layout), Bytes(sizeof(T)), options)) {
  ANNULET_EXPECTS(static_cast<Elements>(gradients.size()) == layout.size(),
                  "the gradient buffer has the layout's size");
  gradients_ = gradients;
  std::vector<std::span<T>> memory;
  for (const schedule::Bucket& bucket : buckets_) memory.push_back(part(gradients, bucket.elements));
  declare(collective, options, std::move(memory));
}

template <class T>
GradientSync<T>::GradientSync(collectives::Engine& engine, std::vector<schedule::Bucket> buckets)
    : engine_(engine), buckets_(std::move(buckets)), shard_(schedule::shard(buckets_, engine.world(), engine.rank())) {
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    bucket_of_.insert(bucket_of_.end(), buckets_[b].end_tensor - buckets_[b].first_tensor, b);
  }
  missing_.resize(buckets_.size());
  ready_.resize(buckets_.size());
}

template <class T>
void GradientSync<T>::declare(schedule::Collective collective, const SyncOptions& options,
                              std::vector<std::span<T>> memory) {
  const collectives::ElementType element = element_of<T>(options.compression);
  const Bytes under_way = schedule::travelling_bytes(Bytes(sizeof(T)), options.compression);
  std::vector<Traffic> traffic;
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    const schedule::Exchange exchange{collective, buckets_[b].elements.count, under_way};
    traffic.push_back({exchange, element, memory[b], std::as_writable_bytes(memory[b])});
    if (element.wire != nullptr) traffic.back().finish = rounding(element, finished_here(exchange, b, options));
  }
  declare(options, std::move(traffic));
}

// What a rank has summed last and need not have sent. The ring gives each rank one chunk; by other algorithms it may be
// anything.
template <class T>
schedule::Interval GradientSync<T>::finished_here(const schedule::Exchange& exchange, std::size_t bucket,
                                                  const SyncOptions& options) const {
  if (execution_of(exchange, options).algorithm != schedule::Algorithm::ring) return {0, exchange.elements};
  return {shard_[bucket].first - buckets_[bucket].elements.first, shard_[bucket].count};
}

template <class T>
void GradientSync<T>::declare(const SyncOptions& options, std::vector<Traffic> traffic) {
  for (Traffic& bucket : traffic) {
    auto plan = std::make_shared<schedule::Plan>(
        schedule::exchange_plan(bucket.exchange, engine_.rank(), engine_.world(), options));
    exchanges_.push_back(bucket.exchange);
    memory_.push_back(bucket.gradients);
    wire_.push_back(bucket.exchange.element * schedule::sent_elements(*plan));
    planned_ += wire_.back();
    operations_.push_back(
        engine_.declare({.name = fmt::format("{} of gradient bucket {} of {}", to_text(bucket.exchange.collective),
                                             operations_.size() + 1, traffic.size()),
                         .purpose = comm::Purpose::gradients,
                         .element = bucket.element,
                         .plan = std::move(plan),
                         .data = bucket.data,
                         .finish = bucket.finish,
                         .common_bytes = static_cast<std::size_t>(bucket.exchange.bytes().value())}));
  }
}

template <class T>
nn::Accumulate GradientSync<T>::accumulation(Elements micro_batch) const {
  return micro_batch == 0 ? nn::Accumulate::overwrite : nn::Accumulate::add;
}

template <class T>
void GradientSync<T>::begin_step() {
  finite_ = true;
  begin_micro_batch(true);
  if (instants_ != nullptr) instants_->checking = Seconds(0), instants_->computed.reset();
}

template <class T>
void GradientSync<T>::begin_micro_batch(bool last) {
  for (std::size_t b = 0; b < buckets_.size(); ++b) missing_[b] = buckets_[b].end_tensor - buckets_[b].first_tensor;
  quiet_ = !last;
}

template <class T>
void GradientSync<T>::record(GradientInstants& where) {
  where.final.resize(bucket_of_.size());
  instants_ = &where;
}

template <class T>
void GradientSync<T>::gradient_ready(std::size_t tensor) {
  if (quiet_) return;
  const std::size_t bucket = bucket_of_[tensor];
  ANNULET_EXPECTS(missing_[bucket] > 0, "each gradient becomes final once a step");
  if (instants_ != nullptr) {
    instants_->final[tensor] = Clock::now() - std::chrono::duration_cast<Clock::duration>(instants_->checking);
  }
  if (--missing_[bucket] == 0) launch(bucket);
}

// Summed in place, a bad value could no longer be traced to its rank; so it is looked for before.
template <class T>
void GradientSync<T>::check(std::size_t bucket) {
  const Instant begin = instants_ != nullptr ? Clock::now() : Instant{};
  if (!all_finite<T>(memory_[bucket])) finite_ = false;
  if (instants_ != nullptr) instants_->checking += Clock::now() - begin;
}

template <class T>
void GradientSync<T>::launch(std::size_t bucket) {
  const bool alone = engine_.world() == 1;  // the norm will tell
  if (!alone || instants_ != nullptr) check(bucket);
  pack(bucket);
  ready_[bucket] = Clock::now();
  engine_.launch(operations_[bucket]);
  launched_ += wire_[bucket];
  engine_.poll();
}

template <class T>
void GradientSync<T>::pulse() {
  if (instants_ != nullptr && missing_.front() == 0) instants_->pulse(thread_computed());
  engine_.poll();
}

template <class T>
void GradientSync<T>::finish() {
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    ANNULET_EXPECTS(missing_[b] == 0, "backward reports every gradient");
    wait(b);
    arrived(b);
  }
}

template <class T>
std::span<const T> GradientSync<T>::summed(std::size_t, schedule::Interval elements) const {
  return part(gradients_, elements);
}

template <class T>
double GradientSync<T>::owned_squared_norm() const {
  double sum = 0;
  for (std::size_t b = 0; b < buckets_.size(); ++b) sum += nn::squared_norm<T>(summed(b, shard_[b]));
  return sum;
}

template <class T>
Bytes GradientSync<T>::payload() const {
  Bytes bytes{0};
  for (const schedule::Exchange& exchange : exchanges_) bytes += schedule::payload(exchange, engine_.world());
  return bytes;
}

template <class T>
void GradientSync<T>::add_owned_squares(OrderFreeSum& sum) const {
  for (std::size_t b = 0; b < buckets_.size(); ++b) sum.add_squares(summed(b, shard_[b]));
}

template <class T>
const schedule::Plan& GradientSync<T>::plan(std::size_t bucket) const {
  return *engine_.spec(operations_[bucket]).plan;
}

template <class T>
BucketTimes GradientSync<T>::times(std::size_t bucket) const {
  const collectives::Timeline& timeline = engine_.timeline(operations_[bucket]);
  return {ready_[bucket], timeline.launched, timeline.finished};
}

// A float is finite unless all bits of its exponent are set; integer operations, so that the loop has no early exit.
template <class T>
bool all_finite(std::span<const T> values) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  constexpr Bits exponent = std::bit_cast<Bits>(std::numeric_limits<T>::infinity());
  Bits bad = 0;
  for (const T value : values) bad |= static_cast<Bits>((std::bit_cast<Bits>(value) & exponent) == exponent);
  return bad == 0;
}

template class GradientSync<float>;
template class GradientSync<double>;
template bool all_finite<float>(std::span<const float>);
template bool all_finite<double>(std::span<const double>);

}  // namespace annulet::parallel
