#include "nn/product.hpp"

#include <algorithm>
#include <limits>

#include "support.hpp"

namespace annulet::nn {
namespace {

template <class T>
T at(const std::vector<T>& m, Elements i) {
  return m[static_cast<std::size_t>(i)];
}

// The operands of the three products, B samples, and their results over NaN.
template <class T>
struct Products {
  Elements samples, in, out;
  std::vector<T> x = noise<T>(samples * in, 1), w = noise<T>(out * in, 2), bias = noise<T>(out, 3);
  std::vector<T> dy = noise<T>(samples * out, 4);
  bool has_bias = true;
  std::vector<T> y = std::vector<T>(dy.size(), T(NAN)), dx = std::vector<T>(x.size(), T(NAN));
  std::vector<T> dw = std::vector<T>(w.size(), T(NAN));

  void run(Accumulate accumulate) {
    Progress quiet;
    const Matrix<const T> x_view(x.data(), samples, in), w_view(w.data(), out, in), dy_view(dy.data(), samples, out);
    multiply_forward(x_view, w_view, has_bias ? bias.data() : nullptr, {y.data(), samples, out}, quiet);
    multiply_backward(dy_view, w_view, {dx.data(), samples, in}, quiet);
    multiply_outer(dy_view, x_view, {dw.data(), out, in}, accumulate, quiet);
  }
};

// Expects value = start + sum over k < depth of term(k), as near as rounding of the sums allows.
template <class T, class Term>
void expect_sum(T value, T start, Elements depth, Term term) {
  double sum = static_cast<double>(start), magnitude = std::abs(sum);
  for (Elements k = 0; k < depth; ++k) {
    sum += term(k);
    magnitude += std::abs(term(k));
  }
  const double bound = 2 * static_cast<double>(depth + 2) * std::numeric_limits<T>::epsilon() * magnitude;
  ASSERT_FALSE(!(std::abs(static_cast<double>(value) - sum) <= bound)) << value << ", by definition " << sum;
}

// Every element of the three products, or `places` of them that meet every panel.
template <class T>
void expect_products(Elements samples, Elements in, Elements out, Accumulate accumulate, Elements places) {
  SCOPED_TRACE(testing::Message() << samples << " x " << in << " x " << out);
  Products<T> p{samples, in, out};
  p.has_bias = accumulate == Accumulate::overwrite;
  if (accumulate == Accumulate::add) p.dw = noise<T>(out * in, 5);
  const std::vector<T> before = p.dw;
  p.run(accumulate);
  const auto product = [](T a, T b) { return static_cast<double>(a) * static_cast<double>(b); };
  for (Elements k = 0; k < places; ++k) {
    const Elements s = k * 37 % samples, i = k * 53 % in, o = k * 71 % out;
    const T start = accumulate == Accumulate::add ? at(before, o * in + i) : T(0);
    expect_sum(at(p.y, s * out + o), p.has_bias ? at(p.bias, o) : T(0), in,
               [&](Elements j) { return product(at(p.x, s * in + j), at(p.w, o * in + j)); });
    expect_sum(at(p.dx, s * in + i), T(0), out,
               [&](Elements j) { return product(at(p.dy, s * out + j), at(p.w, j * in + i)); });
    expect_sum(at(p.dw, o * in + i), start, samples,
               [&](Elements j) { return product(at(p.dy, j * out + o), at(p.x, j * in + i)); });
  }
  for (const auto* result : {&p.y, &p.dx, &p.dw}) {
    ASSERT_TRUE(std::ranges::none_of(*result, [](T value) { return std::isnan(value); })) << "not written";
  }
}

template <class T>
void expect_products_of_many_shapes() {
  const RandomStream stream(7, "shapes");
  const auto extent = [&](std::uint64_t draw) { return static_cast<Elements>(stream.uniform(draw, 1, 71)); };
  for (std::uint64_t k = 0; k < 60; ++k) {
    const Accumulate accumulate = k % 2 ? Accumulate::add : Accumulate::overwrite;
    expect_products<T>(extent(3 * k), extent(3 * k + 1), extent(3 * k + 2), accumulate, 500);
  }
  expect_products<T>(513, 516, 514, Accumulate::add, 50);
  expect_products<T>(523, 515, 517, Accumulate::overwrite, 100);  // several blocks each way; large enough for a BLAS
  expect_products<T>(3, 200, 1100, Accumulate::add, 300);
  expect_products<T>(700, 193, 65, Accumulate::add, 300);
}

TEST(Product, IsWhatTheDefinitionSaysForAwkwardShapes) {
  expect_products_of_many_shapes<float>();
  expect_products_of_many_shapes<double>();
}

TEST(Product, OfNoSamplesOverwritesWithZerosOrAddsNothing) {
  Products<float> p{0, 5, 3};
  p.run(Accumulate::overwrite);
  EXPECT_EQ(p.dw, std::vector<float>(15, 0));
  p.dw = p.w;
  p.run(Accumulate::add);
  EXPECT_EQ(p.dw, p.w);
}

TEST(Product, OfZeroAndInfinityIsNotANumber) {
  Products<float> p{70, 20, 9};
  std::ranges::fill(p.w, 0.0F);
  p.x[0] = std::numeric_limits<float>::infinity();
  p.run(Accumulate::overwrite);
  for (std::size_t o = 0; o < 9; ++o) EXPECT_TRUE(std::isnan(p.y[o]));
  EXPECT_FALSE(std::isnan(p.y[9]));
  EXPECT_TRUE(std::isinf(p.dw[0]));
}

TEST(Product, LetsCommunicationMoveInsideABigProduct) {
  struct Pulses final : Progress {
    int count = 0;
    void pulse() override { ++count; }
  };
  const Elements samples = 64, width = 1024;  // 134 MFLOP a product
  const auto x = noise<float>(samples * width), w = noise<float>(width * width);
  std::vector<float> y(x.size()), dw(w.size());
  const Matrix<const float> x_view(x.data(), samples, width), w_view(w.data(), width, width);
  const Matrix<float> y_view(y.data(), samples, width);
  Pulses forward, backward, outer;
  multiply_forward(x_view, w_view, w.data(), y_view, forward);
  multiply_backward(x_view, w_view, y_view, backward);
  multiply_outer(x_view, x_view, Matrix<float>(dw.data(), width, width), Accumulate::overwrite, outer);
  EXPECT_GE(forward.count, 4);
  EXPECT_GE(backward.count, 4);
  EXPECT_GE(outer.count, 4);
}

}  // namespace
}  // namespace annulet::nn
