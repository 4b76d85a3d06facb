#pragma once
// Stage 0 of ZeRO: every rank keeps all weights and updates all of them in the same way.
#include <vector>

#include "annulet/base/aligned.hpp"
#include "annulet/parallel/weight_sync.hpp"

namespace annulet::parallel {

template <class T>
class ReplicatedWeights : public WeightSync<T> {
 public:
  ReplicatedWeights(const nn::Layout& layout, std::span<const schedule::Bucket> buckets, MemoryAccount& account);

  nn::TensorValues<const T> values() const override { return weights_; }
  schedule::Interval kept(std::size_t bucket) const override { return buckets_[bucket].elements; }
  std::span<T> kept_values(std::size_t bucket) override;
  void visit(const typename WeightSync<T>::Visitor& visitor) override;
  void assign(schedule::Interval elements, std::span<const T> values) override;
  void spoil() override;
  void restore() override;

 protected:
  const nn::Layout& layout() const { return layout_; }
  std::span<const schedule::Bucket> buckets() const { return buckets_; }
  std::span<T> elements() { return weights_; }

 private:
  const nn::Layout& layout_;
  std::vector<schedule::Bucket> buckets_;
  AlignedVector<T> weights_;
  std::vector<T> spoilt_;  // what the NaNs took the place of
};

}  // namespace annulet::parallel
