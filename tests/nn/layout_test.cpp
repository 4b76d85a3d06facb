#include "annulet/nn/layout.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "annulet/base/error.hpp"

namespace annulet::nn {
namespace {

Layout example(std::vector<std::string> names) {
  std::vector<Tensor> tensors;
  for (auto& name : names) tensors.push_back({name, {50, 40}, {Initial::Kind::uniform, 0.5}});
  tensors.push_back({"empty", {0, 3}, {}});
  tensors.push_back({"ones", {30}, {Initial::Kind::constant, 1}});
  tensors.push_back({"normal", {50, 40}, {Initial::Kind::normal, 0.02}});
  return Layout(std::move(tensors));
}

TEST(Layout, PutsTensorsOneAfterTheOther) {
  const Layout layout = example({"a", "b"});
  EXPECT_EQ(layout.size(), 6030);
  EXPECT_EQ(layout.find("b")->first, 2000);
  EXPECT_EQ(layout.find("empty")->count, 0);
  EXPECT_EQ(layout.find("ones")->first, 4000);
  EXPECT_EQ(layout.find("c"), nullptr);
}

TEST(Layout, RefusesARepeatedNameAndANegativeExtent) {
  EXPECT_THROW(example({"a", "a"}), ContractError);
  EXPECT_THROW(Layout({Tensor{"a", {2, -1}, {}}}), ContractError);
}

TEST(Initialize, DependsOnTheNameButNotOnThePlaceOfATensor) {
  const Layout one = example({"a", "b"}), other = example({"b", "a"});
  std::vector<double> w(6030), v(6030);
  initialize<double>(one, 1, w);
  initialize<double>(other, 1, v);
  for (std::size_t i = 0; i < 2000; ++i) {
    ASSERT_EQ(w[i], v[2000 + i]);
    ASSERT_EQ(w[2000 + i], v[i]);
    ASSERT_NE(w[i], v[i]);
  }
}

TEST(Initialize, StartsFloatAndDoubleFromTheSameModel) {
  const Layout layout = example({"a"});
  std::vector<double> w(4030);
  std::vector<float> v(4030);
  initialize<double>(layout, 3, w);
  initialize<float>(layout, 3, v);
  for (std::size_t i = 0; i < w.size(); ++i) ASSERT_EQ(static_cast<float>(w[i]), v[i]);
}

TEST(Initialize, DrawsFromTheDistributionsAskedFor) {
  const Layout layout = example({"a"});
  std::vector<double> w(4030);
  initialize<double>(layout, 3, w);
  double uniform = 0, normal = 0;
  for (std::size_t i = 0; i < 2000; ++i) {
    ASSERT_TRUE(std::abs(w[i]) <= 0.5);
    uniform += w[i] * w[i] / 2000;
    normal += w[2030 + i] * w[2030 + i] / 2000;
  }
  for (std::size_t i = 2000; i < 2030; ++i) ASSERT_EQ(w[i], 1);
  EXPECT_NEAR(uniform, 0.25 / 3, 0.005);
  EXPECT_NEAR(std::sqrt(normal), 0.02, 0.001);
}

}  // namespace
}  // namespace annulet::nn
