#include "annulet/base/order_free_sum.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "annulet/base/random.hpp"

namespace annulet {
namespace {

// Values whose magnitudes spread over 2^-spread to 2^spread.
std::vector<double> values(std::size_t n, double spread, std::uint64_t seed) {
  const RandomStream stream(seed, "values");
  std::vector<double> all(n);
  for (std::size_t i = 0; i < n; ++i) all[i] = std::exp2(stream.uniform(i, -spread, spread)) * stream.uniform(n + i);
  return all;
}

double sum_of(std::span<const double> values) {
  OrderFreeSum sum;
  sum.add(values);
  return sum.value();
}

// In `parts` pieces, added up as an all-reduce would.
double sum_in_parts(std::span<const double> values, std::size_t parts) {
  OrderFreeSum all;
  for (std::size_t k = parts; k-- > 0;) {
    OrderFreeSum part;
    const std::size_t first = values.size() * k / parts, end = values.size() * (k + 1) / parts;
    part.add(values.subspan(first, end - first));
    std::ranges::transform(all.words(), part.words(), all.words().begin(), std::plus());
  }
  return all.value();
}

TEST(OrderFreeSum, HasTheSameBitsInAnyOrderAndGrouping) {
  for (const double spread : {0.0, 3.0, 40.0, 250.0}) {
    for (const std::size_t n : {std::size_t{1}, std::size_t{7}, std::size_t{1024}, std::size_t{5000}}) {
      auto all = values(n, spread, n);
      const double expected = sum_of(all);
      std::ranges::reverse(all);
      EXPECT_EQ(sum_of(all), expected) << spread << " " << n;
      std::ranges::sort(all);
      EXPECT_EQ(sum_of(all), expected) << spread << " " << n;
      for (const std::size_t parts : {2U, 3U, 11U, 64U}) EXPECT_EQ(sum_in_parts(all, parts), expected);
    }
  }
}

TEST(OrderFreeSum, IsAsExactAsADouble) {
  for (const double spread : {1.0, 20.0, 100.0}) {
    auto all = values(3000, spread, 5);
    std::ranges::sort(all);
    const long double exact = std::accumulate(all.begin(), all.end(), 0.0L);
    EXPECT_FALSE(!(std::abs(static_cast<long double>(sum_of(all)) - exact) <= 4e-16L * exact)) << spread;
  }
}

TEST(OrderFreeSum, OfIntegersIsExact) {
  std::vector<double> all(1500);
  std::iota(all.begin(), all.end(), 1.0);
  EXPECT_EQ(sum_of(all), 1500.0 * 1501 / 2);
  EXPECT_EQ(sum_of({}), 0);
  EXPECT_EQ(sum_of(std::vector<double>{0, 0}), 0);
}

// At the borders between bins, where a number is rounded to nothing in the upper one.
TEST(OrderFreeSum, TakesTheBordersOfBinsAlike) {
  std::vector<double> borders;
  for (int bin = -3; bin <= 3; ++bin) {
    const double half = std::ldexp(0.5, 32 * bin);
    for (const double value : {std::nextafter(half, 0.0), half, std::nextafter(half, 1e300)}) borders.push_back(value);
  }
  const double expected = sum_of(borders);
  do {
    EXPECT_EQ(sum_in_parts(borders, borders.size()), expected);
    std::ranges::rotate(borders, borders.begin() + 1);
  } while (borders.front() != std::nextafter(std::ldexp(0.5, -96), 0.0));
}

TEST(OrderFreeSum, OfSquaresIsThatOfTheProducts) {
  const auto all = values(2000, 10, 3);
  std::vector<double> squares;
  for (const double value : all) squares.push_back(value * value);
  OrderFreeSum sum;
  sum.add_squares(all);
  EXPECT_EQ(sum.value(), sum_of(squares));
  const std::vector<float> few{3, 4};
  OrderFreeSum of_floats;
  of_floats.add_squares(few);
  EXPECT_EQ(of_floats.value(), 25);
}

TEST(OrderFreeSum, OfWhatIsNotFiniteIsNaN) {
  for (const double bad : {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN(), 1e300}) {
    auto all = values(1300, 5, 1);
    all[1100] = bad;
    EXPECT_TRUE(std::isnan(sum_of(all))) << bad;
    EXPECT_TRUE(std::isnan(sum_in_parts(all, 7))) << bad;
  }
}

}  // namespace
}  // namespace annulet
