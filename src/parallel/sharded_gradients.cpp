#include "sharded_gradients.hpp"

#include <algorithm>

#include "annulet/base/error.hpp"
#include "annulet/schedule/shards.hpp"
#include "part.hpp"

namespace annulet::parallel {

template <class T>
ShardedGradients<T>::ShardedGradients(collectives::Engine& engine, const nn::Layout& layout,
                                      std::vector<schedule::Bucket> buckets, const SyncOptions& options,
                                      StateAccounts& accounts)
    : GradientSync<T>(engine, std::move(buckets)),
      kept_(static_cast<std::size_t>(schedule::total_count(this->shard())), accounts.gradients) {
  const schedule::Slots plan =
      schedule::gradient_slots(this->buckets(), tied_tensors(layout), schedule::kGradientTurns);
  slot_of_ = plan.of_use;
  for (const Elements size : plan.sizes) slots_.emplace_back(static_cast<std::size_t>(size), accounts.buckets);
  occupants_.assign(slots_.size(), kNobody);
  std::vector<std::span<T>> memory;
  for (std::size_t b = 0, first = 0; b < slot_of_.size(); ++b) {
    const schedule::Bucket& bucket = this->buckets()[b];
    memory.push_back(std::span(slots_[slot_of_[b]]).first(static_cast<std::size_t>(bucket.elements.count)));
    for (std::size_t t = bucket.first_tensor; t < bucket.end_tensor; ++t) {
      places_.push_back(memory.back().data() + (layout.tensors()[t].first - bucket.elements.first));
    }
    const auto count = static_cast<std::size_t>(this->shard()[b].count);
    kept_of_.push_back(std::span(kept_).subspan(first, count));
    first += count;
  }
  begun_.resize(slot_of_.size()), adds_.resize(slot_of_.size());
  this->declare(schedule::Collective::reduce_scatter, options, std::move(memory));
}

// All of them communicate.
template <class T>
void ShardedGradients<T>::begin_micro_batch(bool) {
  GradientSync<T>::begin_micro_batch(true);
  std::fill(begun_.begin(), begun_.end(), false);
}

template <class T>
void ShardedGradients<T>::gradient_begins(std::size_t tensor) {
  const std::size_t bucket = this->bucket_of(tensor), slot = slot_of_[bucket];
  if (begun_[bucket]) return;
  leave(slot);
  occupants_[slot] = bucket, begun_[bucket] = true;
}

template <class T>
void ShardedGradients<T>::gradient_ready(std::size_t tensor) {
  ANNULET_EXPECTS(begun_[this->bucket_of(tensor)], "backward says which gradients it is going to write");
  GradientSync<T>::gradient_ready(tensor);
}

template <class T>
void ShardedGradients<T>::leave(std::size_t slot) {
  const std::size_t bucket = occupants_[slot];
  if (bucket == kNobody) return;
  ANNULET_EXPECTS(!begun_[bucket] || this->complete(bucket), "a bucket is final before another one takes its slot");
  if (this->running(bucket)) {
    const Instant began = Clock::now();
    this->wait(bucket);
    waited_ += Clock::now() - began;
  }
  keep(bucket);
  occupants_[slot] = kNobody;
}

template <class T>
void ShardedGradients<T>::arrived(std::size_t bucket) {
  if (occupants_[slot_of_[bucket]] == bucket) leave(slot_of_[bucket]);
  adds_[bucket] = false;
}

template <class T>
void ShardedGradients<T>::keep(std::size_t bucket) {
  const schedule::Interval own = this->shard()[bucket];
  const Elements offset = own.first - this->buckets()[bucket].elements.first;
  const std::span<const T> sum = part(std::span<const T>(slots_[slot_of_[bucket]]), {offset, own.count});
  T* __restrict kept = kept_of_[bucket].data();
  if (!adds_[bucket]) {
    std::ranges::copy(sum, kept);
  } else {
    for (std::size_t i = 0; i < sum.size(); ++i) kept[i] += sum[i];
  }
  adds_[bucket] = true;
}

template <class T>
std::span<const T> ShardedGradients<T>::summed(std::size_t bucket, schedule::Interval elements) const {
  const schedule::Interval own = this->shard()[bucket];
  ANNULET_EXPECTS(elements.first >= own.first && elements.end() <= own.end(), "only the own chunk is kept");
  return part(std::span<const T>(kept_of_[bucket]), {elements.first - own.first, elements.count});
}

template class ShardedGradients<float>;
template class ShardedGradients<double>;

}  // namespace annulet::parallel
