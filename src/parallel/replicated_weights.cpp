#include "replicated_weights.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "part.hpp"

namespace annulet::parallel {

template <class T>
ReplicatedWeights<T>::ReplicatedWeights(const nn::Layout& layout, std::span<const schedule::Bucket> buckets,
                                        MemoryAccount& account)
    : layout_(layout),
      buckets_(buckets.begin(), buckets.end()),
      weights_(static_cast<std::size_t>(layout.size()), account) {}

template <class T>
std::span<T> ReplicatedWeights<T>::kept_values(std::size_t bucket) {
  return part(std::span(weights_), this->kept(bucket));
}

template <class T>
void ReplicatedWeights<T>::visit(const typename WeightSync<T>::Visitor& visitor) {
  visitor({0, layout_.size()}, weights_);
}

template <class T>
void ReplicatedWeights<T>::assign(schedule::Interval elements, std::span<const T> values) {
  std::ranges::copy(values, part(std::span(weights_), elements).begin());
}

template <class T>
void ReplicatedWeights<T>::spoil() {
  for (const nn::Tensor& tensor : layout_.tensors()) {
    if (tensor.count == 0) continue;
    T& first = weights_[static_cast<std::size_t>(tensor.first)];
    spoilt_.push_back(std::exchange(first, std::numeric_limits<T>::quiet_NaN()));
  }
}

template <class T>
void ReplicatedWeights<T>::restore() {
  auto value = spoilt_.begin();
  for (const nn::Tensor& tensor : layout_.tensors()) {
    if (tensor.count > 0) weights_[static_cast<std::size_t>(tensor.first)] = *value++;
  }
  spoilt_.clear();
}

template <class T>
std::unique_ptr<WeightSync<T>> make_replicated_weights(const nn::Layout& layout,
                                                       std::span<const schedule::Bucket> buckets,
                                                       MemoryAccount& account) {
  return std::make_unique<ReplicatedWeights<T>>(layout, buckets, account);
}

template class ReplicatedWeights<float>;
template class ReplicatedWeights<double>;
template std::unique_ptr<WeightSync<float>> make_replicated_weights(const nn::Layout&,
                                                                    std::span<const schedule::Bucket>, MemoryAccount&);
template std::unique_ptr<WeightSync<double>> make_replicated_weights(const nn::Layout&,
                                                                     std::span<const schedule::Bucket>, MemoryAccount&);

}  // namespace annulet::parallel
