#include "annulet/parallel/gradient_sync.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "annulet/base/error.hpp"
#include "annulet/nn/optimizer.hpp"

namespace annulet::parallel {
namespace {

std::vector<Elements> sizes_of(const nn::Layout& layout) {
  std::vector<Elements> sizes;
  for (const nn::Tensor& tensor : layout.tensors()) sizes.push_back(tensor.count);
  return sizes;
}

template <class T>
std::span<T> part(std::span<T> values, schedule::Interval interval) {
  return values.subspan(static_cast<std::size_t>(interval.first), static_cast<std::size_t>(interval.count));
}

}  // namespace

void GradientInstants::pulse(Instant now) {
  if (looked) {
    const Seconds since = now - *looked;
    between += since, squares_between += since.count() * since.count();
  }
  looked = now;
}

template <class T>
GradientSync<T>::GradientSync(collectives::Engine& engine, const nn::Layout& layout, std::span<T> gradients,
                              const SyncOptions& options)
    : engine_(engine), gradients_(gradients) {
  ANNULET_EXPECTS(static_cast<Elements>(gradients.size()) == layout.size(),
                  "the gradient buffer has the layout's size");
  buckets_ = schedule::gradient_buckets(sizes_of(layout), Bytes(sizeof(T)), options);
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    const schedule::Bucket& bucket = buckets_[b];
    bucket_of_.insert(bucket_of_.end(), bucket.end_tensor - bucket.first_tensor, b);
    auto plan = std::make_shared<schedule::Plan>(
        schedule::bucket_plan(engine.rank(), engine.world(), bucket.elements.count, Bytes(sizeof(T)), options));
    planned_ += Bytes(sizeof(T)) * schedule::sent_elements(*plan);
    operations_.push_back(engine.declare({fmt::format("gradient bucket {} of {}", b + 1, buckets_.size()),
                                          comm::Purpose::gradients, collectives::sum_of<T>(), std::move(plan),
                                          std::as_writable_bytes(part(gradients_, bucket.elements))}));
  }
  missing_.resize(buckets_.size());
  ready_.resize(buckets_.size());
}

template <class T>
void GradientSync<T>::begin_step() {
  for (std::size_t b = 0; b < buckets_.size(); ++b) missing_[b] = buckets_[b].end_tensor - buckets_[b].first_tensor;
  finite_ = true;
  if (instants_ != nullptr) instants_->checking = Seconds(0), instants_->looked.reset();
}

template <class T>
void GradientSync<T>::record(GradientInstants& where) {
  where.final.resize(bucket_of_.size());
  instants_ = &where;
}

template <class T>
void GradientSync<T>::gradient_ready(std::size_t tensor) {
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
  if (!all_finite<T>(part(gradients_, buckets_[bucket].elements))) finite_ = false;
  if (instants_ != nullptr) instants_->checking += Clock::now() - begin;
}

template <class T>
void GradientSync<T>::launch(std::size_t bucket) {
  const bool alone = engine_.world() == 1;  // the norm will tell
  if (!alone || instants_ != nullptr) check(bucket);
  ready_[bucket] = Clock::now();
  engine_.launch(operations_[bucket]);
  engine_.poll();
}

template <class T>
void GradientSync<T>::pulse() {
  if (instants_ != nullptr && missing_.front() == 0) instants_->pulse(Clock::now());
  engine_.poll();
}

template <class T>
void GradientSync<T>::finish() {
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    ANNULET_EXPECTS(missing_[b] == 0, "backward reports every gradient");
    engine_.wait(operations_[b]);
  }
}

template <class T>
double GradientSync<T>::owned_squared_norm() const {
  double sum = 0;
  for (const schedule::Bucket& bucket : buckets_) {
    const schedule::Interval chunk = schedule::chunk(bucket.elements.count, engine_.world(), engine_.rank());
    sum += nn::squared_norm<T>(part(gradients_, {bucket.elements.first + chunk.first, chunk.count}));
  }
  return sum;
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
