#include "reproducible_gradients.hpp"

#include "annulet/schedule/shards.hpp"
#include "part.hpp"

namespace annulet::parallel {

template <class T>
ReproducibleGradients<T>::ReproducibleGradients(collectives::Engine& engine, const nn::Layout& layout,
                                                const SyncOptions& options, int stage, schedule::RankSums sums,
                                                StateAccounts& accounts)
    : GradientSync<T>(engine, buckets_of(layout, stage, Bytes(sizeof(T)), options)),
      sums_(std::move(sums)),
      places_(static_cast<std::size_t>(sums_.slots)),
      sizes_(sizes_of(layout)) {
  std::vector<std::span<T>> sent;
  for (const schedule::Bucket& bucket : this->buckets()) {
    const auto size = static_cast<std::size_t>(bucket.elements.count);
    AlignedVector<T>& memory = memory_.emplace_back(places_.size() * size, accounts.partial_sums);
    for (std::size_t slot = 0; slot < places_.size(); ++slot) {
      for (std::size_t t = bucket.first_tensor; t < bucket.end_tensor; ++t) {
        places_[slot].push_back(memory.data() + slot * size + (layout.tensors()[t].first - bucket.elements.first));
      }
    }
    sent.push_back(std::span(memory).first(sums_.pieces.size() * size));
  }
  this->declare(schedule::gradient_collective(stage), options, std::move(sent));
  const Elements kept = stage >= 2 ? schedule::total_count(this->shard()) : layout.size();
  kept_.emplace(accounts.partial_sums, accounts.gradients, Bytes(sizeof(T)) * kept);
}

template <class T>
nn::TensorValues<T> ReproducibleGradients<T>::values() {
  return nn::TensorValues<T>::at_places(places_[static_cast<std::size_t>(sums_.passes[pass_].slot)]);
}

// A tensor is in the cache just now: its sums are added up at once.
template <class T>
void ReproducibleGradients<T>::gradient_ready(std::size_t tensor) {
  const schedule::SumPass& pass = sums_.passes[pass_];
  for (int merge = 0; merge < pass.merges; ++merge) {
    const auto right = static_cast<std::size_t>(pass.slot - merge);
    T* __restrict to = places_[right - 1][tensor];
    const T* __restrict from = places_[right][tensor];
    for (Elements i = 0; i < sizes_[tensor]; ++i) to[i] += from[i];
  }
  GradientSync<T>::gradient_ready(tensor);
}

template <class T>
std::span<const T> ReproducibleGradients<T>::summed(std::size_t bucket, schedule::Interval elements) const {
  const Elements first = elements.first - this->buckets()[bucket].elements.first;
  return part(std::span<const T>(memory_[bucket]), {first, elements.count});
}

template class ReproducibleGradients<float>;
template class ReproducibleGradients<double>;

}  // namespace annulet::parallel
