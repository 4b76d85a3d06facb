#pragma once
// The register tile that all matrix products are made of: C = start + A B for up to kTileRows rows and kTileColumns
// columns, written on Eigen's packets, so on SSE, AVX2, AVX-512 and NEON alike. Rows of A are broadcast from where they
// lie, by any strides; B is packed: kTileColumns contiguous elements per step of the inner dimension.
// Every element of C is one chain of multiply-adds over k ascending, so its bits depend on nothing around it.
// Cost: a step takes rows x vectors multiply-adds for rows + vectors loads; 24 for 10 with 32 registers.
#include <Eigen/Core>
#include <span>

#include "annulet/base/units.hpp"

namespace annulet::nn {

template <class T>
using Packet = typename Eigen::internal::packet_traits<T>::type;

template <class T>
inline constexpr int kLanes = Eigen::internal::unpacket_traits<Packet<T>>::size;

inline constexpr int kTileRows = 6;
inline constexpr int kTileVectors = EIGEN_ARCH_DEFAULT_NUMBER_OF_REGISTERS >= 32 ? 4 : 2;

template <class T>
inline constexpr Elements kTileColumns = kTileVectors* kLanes<T>;

struct Shape {
  Elements rows, depth, columns;
};

// Rows of contiguous elements, `row` apart.
template <class T>
struct Rows {
  T* data;
  Elements row;
};

// A (i, k) = data[i * row + k * step].
template <class T>
struct Factor {
  const T* data;
  Elements row, step;
};

// C = start + A B; the rows of `start` may all be the same one (0 apart). A null `start` adds nothing. Then each of
// `more` is added, in order.
template <class T>
struct Sum {
  Rows<const T> start;
  Rows<T> c;
  std::span<const Rows<const T>> more{};
};

// Some steps of the inner dimension, and what becomes of their product.
template <class T>
struct TilePart {
  Elements depth;
  Sum<T> sum;
};

// b [depth, kTileColumns], aligned to 64 bytes; its columns up to the next multiple of kLanes are read and not used.
// 1 <= rows <= kTileRows, 1 <= columns <= kTileColumns.
template <class T>
void multiply_tile(Shape shape, const Factor<T>& a, const T* b, const Sum<T>& sum);

// Parts that follow each other in A and B, one after the other: what one writes the next ones may add. Cheaper than a
// call for each where they are short.
struct TileSize {
  Elements rows, columns;
};
template <class T>
void multiply_tile(TileSize size, Factor<T> a, const T* b, std::span<const TilePart<T>> parts);

// B as the tile wants it, [depth, kTileColumns]; up to the next multiple of kLanes, columns that B lacks are zeros.
// pack_rows: B (k, j) = b.data[k * b.row + j]; pack_transpose: B (k, j) = b.data[j * b.row + k].
template <class T>
void pack_rows(Elements depth, Elements columns, Rows<const T> b, T* to);
template <class T>
void pack_transpose(Elements depth, Elements columns, Rows<const T> b, T* to);

// to [columns, rows] = transpose of from [rows, columns]
template <class T>
void transpose(Elements rows, Elements columns, Rows<const T> from, Rows<T> to);

}  // namespace annulet::nn
