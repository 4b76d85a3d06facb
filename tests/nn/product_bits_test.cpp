// What product.hpp promises of Annulet's own products: the bits of an element depend on the inner dimension only.
#include "nn/product.hpp"

#include <algorithm>
#include <initializer_list>

#include "support.hpp"

namespace annulet::nn {
namespace {

template <class T>
struct Dense {
  Elements rows, columns;
  std::vector<T> values;  // after one unused element, so that rows are aligned differently from case to case

  Dense(Elements r, Elements c, std::vector<T> v) : rows(r), columns(c), values(std::move(v)) {}
  Dense(Elements r, Elements c) : Dense(r, c, std::vector<T>(static_cast<std::size_t>(r * c + 1), T(NAN))) {}
  Matrix<T> view() { return {values.data() + 1, rows, columns}; }
  Matrix<const T> view() const { return {values.data() + 1, rows, columns}; }
};

template <class T>
Dense<T> random_matrix(Elements rows, Elements columns, std::uint64_t seed) {
  return {rows, columns, noise<T>(rows * columns + 1, seed)};
}

template <class T>
Dense<T> cut(const Dense<T>& m, Elements row, Elements rows, Elements column, Elements columns) {
  Dense<T> part(rows, columns);
  for (Elements r = 0; r < rows; ++r) std::copy_n(m.view().row(row + r) + column, columns, part.view().row(r));
  return part;
}

// The operands of C [rows, columns] = product of two matrices, cut to some rows and columns of C.
template <class T>
struct Forward {
  static constexpr Elements kInner = 400;
  Dense<T> x = random_matrix<T>(300, kInner, 1), w = random_matrix<T>(301, kInner, 2),
           bias = random_matrix<T>(1, 301, 3);
  Dense<T> part(Elements row, Elements rows, Elements column, Elements columns) const {
    Progress quiet;
    const auto x_part = cut(x, row, rows, 0, kInner), w_part = cut(w, column, columns, 0, kInner);
    Dense<T> y(rows, columns);
    multiply_forward(x_part.view(), w_part.view(), bias.view().data + column, y.view(), quiet);
    return y;
  }
};

template <class T>
struct Backward {
  static constexpr Elements kInner = 400;
  Dense<T> dy = random_matrix<T>(300, kInner, 1), w = random_matrix<T>(kInner, 301, 2);
  Dense<T> part(Elements row, Elements rows, Elements column, Elements columns) const {
    Progress quiet;
    const auto dy_part = cut(dy, row, rows, 0, kInner), w_part = cut(w, 0, kInner, column, columns);
    Dense<T> dx(rows, columns);
    multiply_backward(dy_part.view(), w_part.view(), dx.view(), quiet);
    return dx;
  }
};

template <class T>
struct Outer {
  static constexpr Elements kInner = 400;
  Dense<T> dy = random_matrix<T>(kInner, 300, 1), x = random_matrix<T>(kInner, 301, 2),
           before = random_matrix<T>(300, 301, 3);
  Dense<T> part(Elements row, Elements rows, Elements column, Elements columns) const {
    Progress quiet;
    const auto dy_part = cut(dy, 0, kInner, row, rows), x_part = cut(x, 0, kInner, column, columns);
    Dense<T> dw = cut(before, row, rows, column, columns);
    multiply_outer(dy_part.view(), x_part.view(), dw.view(), Accumulate::add, quiet);
    return dw;
  }
};

template <class T>
void expect_same_bits(const Dense<T>& whole, const Dense<T>& part, Elements row, Elements column) {
  const Dense<T> expected = cut(whole, row, part.rows, column, part.columns);
  for (Elements r = 0; r < part.rows; ++r) {
    ASSERT_TRUE(std::equal(part.view().row(r), part.view().row(r) + part.columns, expected.view().row(r)))
        << "row " << r << " of a part of " << part.rows << " x " << part.columns;
  }
}

template <class Product>
void expect_that_pieces_equal_the_whole() {
  const Product product;
  const auto whole = product.part(0, 300, 0, 301);
  Elements row = 0;
  for (const Elements rows : {1, 5, 63, 231}) {
    expect_same_bits(whole, product.part(row, rows, 0, 301), row, 0);
    Elements column = 0;
    for (const Elements columns : {1, 70, 16, 214}) {
      expect_same_bits(whole, product.part(row, rows, column, columns), row, column);
      column += columns;
    }
    row += rows;
  }
}

TEST(ProductBits, OfForwardDependOnTheInnerDimensionOnly) {
  expect_that_pieces_equal_the_whole<Forward<float>>();
  expect_that_pieces_equal_the_whole<Forward<double>>();
}

TEST(ProductBits, OfBackwardDependOnTheInnerDimensionOnly) {
  expect_that_pieces_equal_the_whole<Backward<float>>();
  expect_that_pieces_equal_the_whole<Backward<double>>();
}

TEST(ProductBits, OfOuterDependOnTheInnerDimensionOnly) {
  expect_that_pieces_equal_the_whole<Outer<float>>();
  expect_that_pieces_equal_the_whole<Outer<double>>();
}

}  // namespace
}  // namespace annulet::nn
