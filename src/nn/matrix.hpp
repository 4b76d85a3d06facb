#pragma once
// A view of a dense row-major matrix [rows, columns]: how layers hand activations to each other.
#include <cstddef>
#include <span>

#include "annulet/base/units.hpp"

namespace annulet::nn {

template <class T>
struct Matrix {
  T* data = nullptr;
  Elements rows = 0;
  Elements columns = 0;

  Matrix() = default;
  Matrix(T* start, Elements row_count, Elements column_count) : data(start), rows(row_count), columns(column_count) {}
  operator Matrix<const T>() const { return {data, rows, columns}; }

  Elements size() const { return rows * columns; }
  bool empty() const { return size() == 0; }
  T* row(Elements r) const { return data + r * columns; }
  std::span<T> elements() const { return {data, static_cast<std::size_t>(size())}; }
};

}  // namespace annulet::nn
