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
void tile(std::span<const TilePart<T>> parts, const Factor<T>& factor, const T* b) {
  const T* a = factor.data;
  for (const auto& [depth, out] : parts) {
    Packet<T> sums[std::size_t{kRows}][std::size_t{kVectors}];
#pragma GCC unroll 8
    for (auto& row : sums) {
#pragma GCC unroll 8
      for (auto& sum : row) sum = pset1<Packet<T>>(T(0));
    }
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
    const auto add = [&sums](Rows<const T> to) {
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) {
          sums[r][v] = padd(ploadu<Packet<T>>(to.data + r * to.row + v * kLanes<T>), sums[r][v]);
        }
      }
    };
    if (out.start.data) add(out.start);
    for (const Rows<const T>& more : out.more) add(more);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) pstoreu(out.c.data + r * out.c.row + v * kLanes<T>, sums[r][v]);
    }
  }
}

template <class T>
using TileFunction = void (*)(std::span<const TilePart<T>>, const Factor<T>&, const T*);

// tiles[(rows - 1) * kTileVectors + vectors - 1]
template <class T, int... kIndex>
constexpr auto tiles(std::integer_sequence<int, kIndex...>) {
  return std::array<TileFunction<T>, sizeof...(kIndex)>{
      tile<T, kIndex / kTileVectors + 1, kIndex % kTileVectors + 1>...};
}

template <class T>
TileFunction<T> tile_of(TileSize size) {
  static constexpr auto kTiles = tiles<T>(std::make_integer_sequence<int, kTileRows * kTileVectors>{});
  const Elements vectors = (size.columns + kLanes<T> - 1) / kLanes<T>;
  return kTiles[static_cast<std::size_t>((size.rows - 1) * kTileVectors + vectors - 1)];
}

}  // namespace

template <class T>
void multiply_tile(TileSize size, Factor<T> a, const T* b, std::span<const TilePart<T>> parts) {
  if (size.columns % kLanes<T> == 0) return tile_of<T>(size)(parts, a, b);
  for (const auto& [depth, sum] : parts) {
    multiply_tile<T>({size.rows, depth, size.columns}, a, b, sum);
    a.data += depth * a.step, b += depth * kTileColumns<T>;
  }
}

template <class T>
void multiply_tile(Shape shape, const Factor<T>& a, const T* b, const Sum<T>& sum) {
  const auto function = tile_of<T>({shape.rows, shape.columns});
  const auto run = [&](const Sum<T>& to) {
    const TilePart<T> part{shape.depth, to};
    function(std::span(&part, 1), a, b);
  };
  if (shape.columns % kLanes<T> == 0) return run(sum);
  alignas(64) T whole[kTileRows * kTileColumns<T>];  // a last packet would reach past the end of a row of C
  run({{nullptr, 0}, {whole, kTileColumns<T>}});
  for (Elements r = 0; r < shape.rows; ++r) {
    const T* from = whole + r * kTileColumns<T>;
    const T* start = sum.start.data ? sum.start.data + r * sum.start.row : nullptr;
    T* to = sum.c.data + r * sum.c.row;
    for (Elements c = 0; c < shape.columns; ++c) to[c] = start ? start[c] + from[c] : from[c];
    for (const Rows<const T>& other : sum.more) {
      for (Elements c = 0; c < shape.columns; ++c) to[c] += other.data[r * other.row + c];
    }
  }
}

template <class T>
void pack_rows(Elements depth, Elements columns, Rows<const T> b, T* to) {
  const Elements end = (columns + kLanes<T> - 1) / kLanes<T> * kLanes<T>;
  for (Elements k = 0; k < depth; ++k, to += kTileColumns<T>) {
    const T* row = b.data + k * b.row;
    if (columns == kTileColumns<T>) {
      std::copy_n(row, kTileColumns<T>, to);
    } else {
      std::fill(std::copy_n(row, columns, to), to + end, T(0));
    }
  }
}

template <class T>
void pack_transpose(Elements depth, Elements columns, Rows<const T> b, T* to) {
  transpose<T>(columns, depth, b, {to, kTileColumns<T>});
  const Elements end = (columns + kLanes<T> - 1) / kLanes<T> * kLanes<T>;
  for (Elements k = 0; columns < end && k < depth; ++k) {
    std::fill(to + k * kTileColumns<T> + columns, to + k * kTileColumns<T> + end, T(0));
  }
}

template <class T>
void transpose(Elements rows, Elements columns, Rows<const T> from, Rows<T> to) {
  constexpr Elements n = kLanes<T>;
  const Elements whole_rows = rows / n * n, whole_columns = columns / n * n;
  for (Elements r = 0; r < whole_rows; r += n) {
    for (Elements c = 0; c < whole_columns; c += n) {
      Eigen::internal::PacketBlock<Packet<T>, n> block;
      for (Elements i = 0; i < n; ++i) block.packet[i] = ploadu<Packet<T>>(from.data + (r + i) * from.row + c);
      Eigen::internal::ptranspose(block);
      for (Elements i = 0; i < n; ++i) pstoreu(to.data + (c + i) * to.row + r, block.packet[i]);
    }
  }
  for (Elements c = 0; c < columns; ++c) {
    T* row = to.data + c * to.row;
    for (Elements r = c < whole_columns ? whole_rows : 0; r < rows; ++r) row[r] = from.data[r * from.row + c];
  }
}

#define ANNULET_INSTANTIATE(T)                                                              \
  template void multiply_tile(Shape, const Factor<T>&, const T*, const Sum<T>&);            \
  template void multiply_tile(TileSize, Factor<T>, const T*, std::span<const TilePart<T>>); \
  template void pack_rows(Elements, Elements, Rows<const T>, T*);                           \
  template void pack_transpose(Elements, Elements, Rows<const T>, T*);                      \
  template void transpose(Elements, Elements, Rows<const T>, Rows<T>);
ANNULET_INSTANTIATE(float)
ANNULET_INSTANTIATE(double)
#undef ANNULET_INSTANTIATE

}  // namespace annulet::nn
