#include "nn/kernel.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace annulet::nn {
namespace {

using Eigen::internal::padd;
using Eigen::internal::ploadu;
using Eigen::internal::pmadd;
using Eigen::internal::pset1;
using Eigen::internal::pstoreu;

// The accumulators stay in registers only if every loop over them is unrolled before they are placed: hence the
// pragmas.
template <class T, int kRows, int kVectors>
void tile(Elements depth, const Factor<T>& factor, const T* b, const Sum<T>& out) {
  Packet<T> sums[std::size_t{kRows}][std::size_t{kVectors}];
#pragma GCC unroll 8
  for (auto& row : sums) {
#pragma GCC unroll 8
    for (auto& sum : row) sum = pset1<Packet<T>>(T(0));
  }
  const T* a = factor.data;
  for (Elements k = 0; k < depth; ++k, a += factor.step, b += kTileColumns<T>) {
    Packet<T> lanes[std::size_t{kVectors}];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) lanes[v] = ploadu<Packet<T>>(b + v * kLanes<T>);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const Packet<T> broadcast = pset1<Packet<T>>(a[r * factor.row]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sums[r][v] = pmadd(broadcast, lanes[v], sums[r][v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      if (out.start) sums[r][v] = padd(ploadu<Packet<T>>(out.start + r * out.start_row + v * kLanes<T>), sums[r][v]);
      pstoreu(out.c + r * out.c_row + v * kLanes<T>, sums[r][v]);
    }
  }
}

template <class T>
using TileFunction = void (*)(Elements, const Factor<T>&, const T*, const Sum<T>&);

// tiles[(rows - 1) * kTileVectors + vectors - 1]
template <class T, int... kIndex>
constexpr auto tiles(std::integer_sequence<int, kIndex...>) {
  return std::array<TileFunction<T>, sizeof...(kIndex)>{
      tile<T, kIndex / kTileVectors + 1, kIndex % kTileVectors + 1>...};
}

}  // namespace

template <class T>
void multiply_tile(Elements rows, Elements columns, Elements depth, const Factor<T>& a, const T* b, const Sum<T>& sum) {
  static constexpr auto kTiles = tiles<T>(std::make_integer_sequence<int, kTileRows * kTileVectors>{});
  const Elements vectors = (columns + kLanes<T> - 1) / kLanes<T>;
  const auto function = kTiles[static_cast<std::size_t>((rows - 1) * kTileVectors + vectors - 1)];
  if (columns % kLanes<T> == 0) return function(depth, a, b, sum);
  alignas(64) T whole[kTileRows * kTileColumns<T>];  // a last vector that would reach past the end of a row of C
  function(depth, a, b, {nullptr, 0, whole, kTileColumns<T>});
  for (Elements r = 0; r < rows; ++r) {
    const T* from = whole + r * kTileColumns<T>;
    T* to = sum.c + r * sum.c_row;
    for (Elements c = 0; c < columns; ++c) to[c] = sum.start ? sum.start[r * sum.start_row + c] + from[c] : from[c];
  }
}

template <class T>
void transpose(const T* from, Elements from_row, Elements rows, Elements columns, T* to, Elements to_row) {
  constexpr Elements n = kLanes<T>;
  const Elements whole_rows = rows / n * n, whole_columns = columns / n * n;
  for (Elements r = 0; r < whole_rows; r += n) {
    for (Elements c = 0; c < whole_columns; c += n) {
      Eigen::internal::PacketBlock<Packet<T>, n> block;
      for (Elements i = 0; i < n; ++i) block.packet[i] = ploadu<Packet<T>>(from + (r + i) * from_row + c);
      Eigen::internal::ptranspose(block);
      for (Elements i = 0; i < n; ++i) pstoreu(to + (c + i) * to_row + r, block.packet[i]);
    }
  }
  for (Elements c = 0; c < columns; ++c) {
    for (Elements r = c < whole_columns ? whole_rows : 0; r < rows; ++r) to[c * to_row + r] = from[r * from_row + c];
  }
}

#define ANNULET_INSTANTIATE(T)                                                                             \
  template void multiply_tile<T>(Elements, Elements, Elements, const Factor<T>&, const T*, const Sum<T>&); \
  template void transpose<T>(const T*, Elements, Elements, Elements, T*, Elements);
ANNULET_INSTANTIATE(float)
ANNULET_INSTANTIATE(double)
#undef ANNULET_INSTANTIATE

}  // namespace annulet::nn
