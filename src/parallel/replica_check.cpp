#include "annulet/parallel/replica_check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <map>
#include <type_traits>

#include "annulet/schedule/ring.hpp"
#include "part.hpp"

namespace annulet::parallel {
namespace {

// An all-gather combines nothing; an operation has a type that could be.
void add_checksums(std::byte* to, const std::byte* from, Elements n) {
  for (Elements i = 0; i < n; ++i) {
    reinterpret_cast<std::uint64_t*>(to)[i] += reinterpret_cast<const std::uint64_t*>(from)[i];
  }
}

}  // namespace

ReplicaCheck::ReplicaCheck(collectives::Engine& engine, const nn::Layout& layout)
    : engine_(engine), layout_(layout), checksums_(static_cast<std::size_t>(engine.world()) * layout.tensors().size()) {
  auto plan =
      schedule::ring_all_gather({.rank = engine.rank(), .world = engine.world(), .elements = std::ssize(checksums_)});
  operation_ = engine.declare({"checksums of weights",
                               comm::Purpose::other,
                               {"checksum", sizeof(std::uint64_t), add_checksums},
                               std::make_shared<schedule::Plan>(std::move(plan)),
                               std::as_writable_bytes(std::span(checksums_))});
}

template <class T>
std::string ReplicaCheck::difference(WeightSync<T>& weights) {
  const auto tensors = layout_.tensors();
  for (std::size_t t = 0; t < tensors.size(); ++t) checksum(engine_.rank(), t) = 0;
  weights.visit([&](schedule::Interval elements, std::span<const T> values) {
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      const Elements first = std::max(tensors[t].first, elements.first);
      const Elements end = std::min(tensors[t].first + tensors[t].count, elements.end());
      if (first >= end) continue;
      std::uint64_t& sum = checksum(engine_.rank(), t);
      sum = parallel::checksum<T>(part(values, {first - elements.first, end - first}), sum);
    }
  });
  engine_.launch(operation_);
  engine_.wait(operation_);
  return verdict();
}

// The ranks that are not of the largest group of equals; of equal groups the one with the lowest rank is right.
std::vector<int> ReplicaCheck::dissenters(std::size_t tensor) const {
  std::map<std::uint64_t, int> count;
  for (int r = 0; r < engine_.world(); ++r) ++count[checksums_[index(r, tensor)]];
  std::uint64_t right = checksums_[index(0, tensor)];
  for (int r = 1; r < engine_.world(); ++r) {
    if (const std::uint64_t sum = checksums_[index(r, tensor)]; count[sum] > count[right]) right = sum;
  }
  std::vector<int> others;
  for (int r = 0; r < engine_.world(); ++r) {
    if (checksums_[index(r, tensor)] != right) others.push_back(r);
  }
  return others;
}

std::string ReplicaCheck::verdict() const {
  std::string text;
  int more = 0;
  for (std::size_t t = 0; t < layout_.tensors().size(); ++t) {
    const std::vector<int> others = dissenters(t);
    if (others.empty()) continue;
    if (!text.empty()) {
      ++more;
      continue;
    }
    text = fmt::format("{} on rank{} {}", layout_.tensors()[t].name, others.size() > 1 ? "s" : "",
                       fmt::join(others, ", "));
  }
  return more > 0 ? fmt::format("{}, and {} more tensor{}", text, more, more > 1 ? "s" : "") : text;
}

// FNV-1a by elements instead of bytes, with the high half folded in, since a multiplication carries upwards only.
template <class T>
std::uint64_t checksum(std::span<const T> values, std::uint64_t before) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  std::uint64_t sum = before ^ 0xcbf29ce484222325ULL;
  for (const T value : values) {
    sum = (sum ^ std::bit_cast<Bits>(value)) * 0x100000001b3ULL;
    sum ^= sum >> 32;
  }
  return sum;
}

template std::string ReplicaCheck::difference(WeightSync<float>&);
template std::string ReplicaCheck::difference(WeightSync<double>&);
template std::uint64_t checksum<float>(std::span<const float>, std::uint64_t);
template std::uint64_t checksum<double>(std::span<const double>, std::uint64_t);

}  // namespace annulet::parallel
