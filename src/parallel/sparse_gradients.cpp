#include "annulet/parallel/sparse_gradients.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "annulet/base/error.hpp"
#include "part.hpp"

namespace annulet::parallel {
namespace {

constexpr auto kPosition = static_cast<std::size_t>(schedule::kPositionBytes.value());

void never_added(std::byte*, const std::byte*, Elements) {
  ANNULET_EXPECTS(false, "pieces of sparse gradients are gathered, not added on the way");
}

Elements largest(const nn::Layout& layout) {
  Elements most = 0;
  for (const nn::Tensor& tensor : layout.tensors()) most = std::max(most, tensor.count);
  return most;
}

void require_room_for_positions(std::span<const schedule::Bucket> buckets) {
  for (const schedule::Bucket& bucket : buckets) {
    if (bucket.elements.count <= std::numeric_limits<std::uint32_t>::max()) continue;
    throw InputError(
        {fmt::format("a gradient bucket of {} elements cannot be compressed by topk", bucket.elements.count),
         "a position has 32 bits", "Choose a smaller --bucket, or --compress bf16"});
  }
}

}  // namespace

template <class T>
SparseGradients<T>::SparseGradients(collectives::Engine& engine, const nn::Layout& layout, std::span<T> gradients,
                                    const SyncOptions& options, StateAccounts& accounts)
    : GradientSync<T>(engine, schedule::gradient_buckets(sizes_of(layout), Bytes(sizeof(T)), options)),
      rank_(engine.rank()),
      world_(engine.world()),
      compression_(options.compression),
      gradients_(gradients),
      residual_(gradients.size(), accounts.residual),
      top_k_(largest(layout), accounts.buckets) {
  ANNULET_EXPECTS(compression_.kind == schedule::Compression::Kind::top_k, "sparse gradients are those of top-k");
  ANNULET_EXPECTS(static_cast<Elements>(gradients.size()) == layout.size(),
                  "the gradient buffer has the layout's size");
  require_room_for_positions(this->buckets());
  for (const nn::Tensor& tensor : layout.tensors()) tensors_.push_back({tensor.first, tensor.count});
  const std::vector<Elements> sizes = sizes_of(layout);
  for (const schedule::Bucket& bucket : this->buckets()) {
    counts_.push_back(schedule::sparse_count(bucket, sizes, compression_));
  }
  const collectives::ElementType entry{"value with its position", sizeof(T) + kPosition, never_added};
  const auto exchanges =
      schedule::gradient_exchanges({this->buckets(), sizes, Bytes(sizeof(T)), 0}, world_, compression_);
  std::vector<typename GradientSync<T>::Traffic> traffic;
  for (std::size_t b = 0; b < exchanges.size(); ++b) {
    pieces_.emplace_back(static_cast<std::size_t>(exchanges[b].bytes().value()), accounts.buckets);
    traffic.push_back({exchanges[b], entry, part(gradients, this->buckets()[b].elements), pieces_.back(),
                       [this, b](std::span<std::byte>) { unpack(b); }});
  }
  this->declare(options, std::move(traffic));
}

template <class T>
void SparseGradients<T>::begin_step() {
  GradientSync<T>::begin_step();
  packing_ = unpacking_ = Seconds(0);
}

template <class T>
std::span<const T> SparseGradients<T>::summed(std::size_t, schedule::Interval elements) const {
  return part(std::span<const T>(gradients_), elements);
}

template <class T>
std::span<const std::byte> SparseGradients<T>::piece(std::size_t bucket, int rank) const {
  const std::size_t bytes = pieces_[bucket].size() / static_cast<std::size_t>(world_);
  return std::span(pieces_[bucket]).subspan(static_cast<std::size_t>(rank) * bytes, bytes);
}

template <class T>
auto SparseGradients<T>::part_of(std::size_t bucket, int rank) -> Part {
  const auto count = static_cast<std::size_t>(counts_[bucket]);
  std::byte* begin = pieces_[bucket].data() + static_cast<std::size_t>(rank) * count * (sizeof(T) + kPosition);
  return {{begin, count * sizeof(T)}, {reinterpret_cast<std::uint32_t*>(begin + count * sizeof(T)), count}};
}

template <class T>
void SparseGradients<T>::pack(std::size_t bucket) {
  const Instant began = Clock::now();
  const schedule::Bucket& whole = this->buckets()[bucket];
  const Part own = part_of(bucket, rank_);
  std::size_t done = 0;
  for (std::size_t t = whole.first_tensor; t < whole.end_tensor; ++t) {
    const auto count = static_cast<std::size_t>(schedule::top_k_count(tensors_[t].count, compression_.one_in));
    top_k_.take(part(std::span(residual_), tensors_[t]), part(std::span<const T>(gradients_), tensors_[t]),
                {own.values.subspan(done * sizeof(T), count * sizeof(T)), own.positions.subspan(done, count),
                 static_cast<std::uint32_t>(tensors_[t].first - whole.elements.first)});
    done += count;
  }
  packing_ += Clock::now() - began;
}

template <class T>
void SparseGradients<T>::unpack(std::size_t bucket) {
  const Instant began = Clock::now();
  const std::span<T> sum = part(gradients_, this->buckets()[bucket].elements);
  std::ranges::fill(sum, T{0});
  for (int rank = 0; rank < world_; ++rank) {
    const Part piece = part_of(bucket, rank);
    add_taken<T>(sum, piece.values, piece.positions);
  }
  unpacking_ += Clock::now() - began;
}

template class SparseGradients<float>;
template class SparseGradients<double>;

}  // namespace annulet::parallel
