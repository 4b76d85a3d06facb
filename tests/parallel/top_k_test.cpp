#include "annulet/parallel/top_k.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>

#include "annulet/base/error.hpp"
#include "annulet/base/random.hpp"

namespace annulet::parallel {
namespace {

template <class T>
struct Chosen {
  std::vector<T> values;
  std::vector<std::uint32_t> positions;
};

template <class T>
Chosen<T> choose(TopK<T>& top_k, std::span<T> residual, std::span<const T> gradient, std::size_t k) {
  std::vector<std::byte> bytes(k * sizeof(T));
  Chosen<T> taken{std::vector<T>(k), std::vector<std::uint32_t>(k)};
  top_k.take(residual, gradient, {bytes, taken.positions});
  if (k > 0) std::memcpy(taken.values.data(), bytes.data(), bytes.size());
  return taken;
}

// By sorting: the largest, of equal ones the first, in ascending order of position.
template <class T>
std::vector<std::uint32_t> largest(const std::vector<T>& values, std::size_t k) {
  std::vector<std::uint32_t> positions(values.size());
  std::iota(positions.begin(), positions.end(), 0U);
  std::ranges::stable_sort(positions, [&](auto a, auto b) { return std::abs(values[a]) > std::abs(values[b]); });
  positions.resize(k);
  std::ranges::sort(positions);
  return positions;
}

template <class T>
std::vector<T> normal(std::size_t n, const char* purpose) {
  const RandomStream stream(1, purpose);
  std::vector<T> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<T>(stream.normal(i));
  return values;
}

template <class T>
std::vector<T> sum_of_both(const std::vector<T>& a, const std::vector<T>& b) {
  std::vector<T> sum(a);
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += b[i];
  return sum;
}

template <class T>
void expect_largest(const std::vector<T>& residual, const std::vector<T>& gradient, std::size_t k) {
  SCOPED_TRACE(testing::Message() << k << " of " << gradient.size());
  MemoryAccount account("top-k");
  TopK<T> top_k(std::ssize(gradient), account);
  std::vector<T> rest = residual;
  const Chosen<T> taken = choose<T>(top_k, rest, gradient, k);
  const std::vector<T> all = sum_of_both(residual, gradient);
  EXPECT_EQ(taken.positions, largest(all, k));
  std::vector<T> together = rest;
  for (std::size_t i = 0; i < k; ++i) {
    EXPECT_EQ(rest[taken.positions[i]], T{0});
    together[taken.positions[i]] = taken.values[i];
  }
  EXPECT_EQ(std::memcmp(together.data(), all.data(), all.size() * sizeof(T)), 0)
      << "what is sent and the new residual are not the gradient and the old one, bit for bit";
}

TEST(TopK, TakesTheLargestAndLeavesTheRestBitForBit) {
  for (const std::size_t n : {1U, 15U, 17U, 1000U, 4096U, 20'000U}) {
    for (const std::size_t k : {std::size_t{1}, n / 16, n / 3, n}) {
      expect_largest(normal<float>(n, "residual"), normal<float>(n, "gradient"), k);
    }
    expect_largest(normal<double>(n, "residual"), normal<double>(n, "gradient"), (n + 15) / 16);
  }
}

TEST(TopK, TakesTheFirstOfEqualOnes) {
  std::vector<float> ones(8'000, 1.0F);
  for (std::size_t i = 0; i < ones.size(); i += 2) ones[i] = -1;
  expect_largest(std::vector<float>(ones.size()), ones, 300);
  for (std::size_t i = 1; i < ones.size(); i += 5) ones[i] *= 2;
  expect_largest(std::vector<float>(ones.size()), ones, 500);
  expect_largest(std::vector<float>(ones.size()), ones, 2000);
  expect_largest(std::vector<float>(ones.size()), std::vector<float>(ones.size()), 500);
}

// Columns of very different size, in lines that a sample of every so many values would see in step; and one large
// block.
TEST(TopK, IsNotMisledByTheOrderOfValues) {
  std::vector<float> matrix = normal<float>(64 * 128, "matrix");
  for (std::size_t i = 0; i < matrix.size(); ++i) matrix[i] *= i % 64 == 0 ? 100.0F : 0.01F;
  expect_largest(std::vector<float>(matrix.size()), matrix, matrix.size() / 16);
  std::vector<float> block(10'000, 0.0F);
  for (std::size_t i = 4'000; i < 4'100; ++i) block[i] = static_cast<float>(i);
  for (const std::size_t k : {50U, 100U, 625U}) expect_largest(std::vector<float>(block.size()), block, k);
  std::vector<float> ascending(10'000);
  std::iota(ascending.begin(), ascending.end(), 0.0F);
  expect_largest(std::vector<float>(ascending.size()), ascending, 625);
}

TEST(TopK, CountsPositionsFromWhereItIsTold) {
  MemoryAccount account("top-k");
  TopK<float> top_k(4, account);
  std::vector<float> residual(4);
  std::vector<std::byte> values(2 * sizeof(float));
  std::vector<std::uint32_t> positions(2);
  top_k.take(residual, std::vector<float>{1, 4, 2, -3}, {values, positions, 100});
  EXPECT_EQ(positions, (std::vector<std::uint32_t>{101, 103}));
}

TEST(TopK, AddsWhatWasTakenWhereItBelongsAndRefusesOtherPlaces) {
  std::vector<double> sum{1, 1, 1};
  const std::vector<double> values{2, 3};
  add_taken<double>(sum, std::as_bytes(std::span(values)), std::vector<std::uint32_t>{0, 2});
  EXPECT_EQ(sum, (std::vector<double>{3, 1, 4}));
  EXPECT_THROW(add_taken<double>(sum, std::as_bytes(std::span(values)), std::vector<std::uint32_t>{0, 3}), RunError);
}

TEST(TopK, GivesWhatWasLeftBehindNextTime) {
  MemoryAccount account("top-k");
  TopK<float> top_k(3, account);
  std::vector<float> residual(3);
  EXPECT_EQ(choose<float>(top_k, residual, std::vector<float>{3, 2, 1}, 1).values, std::vector<float>{3});
  EXPECT_EQ(choose<float>(top_k, residual, std::vector<float>{0, 2, 1}, 1).values, std::vector<float>{4});
  EXPECT_EQ(choose<float>(top_k, residual, std::vector<float>{0, 0, 1}, 1).values, std::vector<float>{3});
  EXPECT_EQ(residual, std::vector<float>(3));
}

}  // namespace
}  // namespace annulet::parallel
