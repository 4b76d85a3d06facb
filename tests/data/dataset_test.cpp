#include "annulet/data/dataset.hpp"

#include <gmock/gmock.h>

#include <limits>
#include <map>

#include "annulet/base/error.hpp"
#include "base/temporary_folder.hpp"
#include "data/idx_files.hpp"

namespace annulet::data {
namespace {

using annulet::test::TemporaryFolder;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::ThrowsMessage;
using namespace testing;

template <class T>
struct Rows {
  std::vector<T> features, values;
  std::vector<std::int32_t> labels;
};

template <class T>
Rows<T> gather(const Dataset& set, std::vector<Elements> indices) {
  const auto n = static_cast<Elements>(indices.size());
  Rows<T> rows{std::vector<T>(static_cast<std::size_t>(n * set.features())),
               std::vector<T>(static_cast<std::size_t>(n * set.outputs())),
               std::vector<std::int32_t>(set.classes() > 0 ? indices.size() : 0)};
  set.gather<T>(indices, rows.features, rows.labels, rows.values);
  return rows;
}

TEST(Dataset, ScalesBytesToTheUnitIntervalAndNormalises) {
  const std::vector<std::uint8_t> bytes{0, 51, 255, 102};
  const auto plain = gather<double>(Dataset::classification(bytes, {1, 0}, 2), {1, 0});
  EXPECT_THAT(plain.features, ElementsAre(1, 0.4, 0, 0.2));
  EXPECT_THAT(plain.labels, ElementsAre(0, 1));
  const auto scaled =
      gather<float>(Dataset::classification(bytes, {1, 0}, 2, {.mean = 0.5, .deviation = 0.25}), {1, 0});
  EXPECT_THAT(scaled.features, ElementsAre(2, -0.4f, -2, -1.2f));
}

TEST(Dataset, GathersRealFeaturesAndValues) {
  const auto set = Dataset::regression(std::vector<double>{0.1, 0.2, 0.3}, {1, 2, 3, 4, 5, 6}, 2);
  const auto rows = gather<double>(set, {2, 0, 2});
  EXPECT_THAT(rows.features, ElementsAre(0.3, 0.1, 0.3));
  EXPECT_THAT(rows.values, ElementsAre(5, 6, 1, 2, 5, 6));
  EXPECT_EQ(set.classes(), 0);
  EXPECT_EQ(set.outputs(), 2);
  EXPECT_TRUE(gather<float>(set, {}).features.empty());
}

TEST(Dataset, ChecksWhatItGathersInto) {
  const auto set = Dataset::classification(std::vector<float>{1, 2}, {0, 0}, 1);
  EXPECT_THROW(gather<float>(set, {2}), ContractError);
  EXPECT_THROW(gather<float>(set, {-1}), ContractError);
  const std::vector<Elements> index{0};
  std::vector<float> narrow;
  std::vector<std::int32_t> label(1);
  EXPECT_THROW(set.gather<float>(index, narrow, label, {}), ContractError);
}

TEST(Dataset, RefusesDataThatDoesNotFitTogether) {
  const std::vector<float> features{1, 2, 3, 4};
  const auto refused = [&](std::vector<std::int32_t> classes, Elements count, const char* text) {
    EXPECT_THAT([&] { Dataset::classification(features, classes, count); }, ThrowsMessage<InputError>(HasSubstr(text)));
  };
  refused({}, 2, "no samples");
  refused({0, 1, 0}, 2, "4 features do not divide among 3 samples");
  refused({0, 2}, 2, "label 2 of sample 1 is not in [0, 2)");
  refused({0, -1}, 0, "label -1 of sample 1");
  EXPECT_THAT([&] { Dataset::regression(features, {1, 2, 3}, 2); }, ThrowsMessage<InputError>(HasSubstr("3 values")));
  EXPECT_THAT(
      [&] {
        Dataset::classification(features, {0, 0}, 1, {.deviation = 0});
      },
      ThrowsMessage<InputError>(HasSubstr("deviation 0")));
}

TEST(Dataset, RefusesFeaturesAndValuesThatAreNotFinite) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  EXPECT_THAT(
      [&] {
        Dataset::classification(std::vector<double>{1, 2, 3, nan}, {0, 0}, 1);
      },
      ThrowsMessage<InputError>(HasSubstr("feature 1 of sample 1 is nan")));
  EXPECT_THAT(
      [&] {
        Dataset::regression(std::vector<double>{1, 2}, {1, inf}, 1);
      },
      ThrowsMessage<InputError>(HasSubstr("value 0 of sample 1 is inf")));
}

TEST(Dataset, FingerprintSeesEveryByteAndTheScaling) {
  std::vector<std::uint8_t> bytes(70);
  const auto fingerprint = [&](std::vector<std::int32_t> classes, Scaling scaling) {
    return Dataset::classification(bytes, std::move(classes), 3, scaling).fingerprint();
  };
  const std::uint64_t original = fingerprint({0, 1}, {});
  EXPECT_EQ(fingerprint({0, 1}, {}), original);
  EXPECT_NE(fingerprint({0, 2}, {}), original);
  EXPECT_NE(fingerprint({0, 1}, {.mean = 0.1}), original);
  for (std::uint8_t& byte : bytes) {
    byte = 128;
    EXPECT_NE(fingerprint({0, 1}, {}), original);
    byte = 0;
  }
  bytes[7] = bytes[39] = 128;  // the top bits of two words of one lane must not cancel
  EXPECT_NE(fingerprint({0, 1}, {}), original);
}

TEST(Synthetic, DependsOnTheSeedOnly) {
  const SyntheticOptions options{.samples = 500, .features = 3, .classes = 4, .seed = 5};
  const Dataset set = make_synthetic(options);
  EXPECT_EQ(set.fingerprint(), make_synthetic(options).fingerprint());
  EXPECT_NE(set.fingerprint(), make_synthetic({.samples = 500, .features = 3, .classes = 4, .seed = 6}).fingerprint());
  std::vector<Elements> all(500);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<Elements>(i);
  const auto rows = gather<float>(set, all);
  EXPECT_THAT(rows.features, Each(AllOf(::testing::Ge(0.0f), ::testing::Lt(1.0f))));
  std::map<std::int32_t, int> histogram;
  for (const std::int32_t label : rows.labels) ++histogram[label];
  EXPECT_EQ(histogram.size(), 4);
  for (const auto& [label, count] : histogram) EXPECT_NEAR(count, 125, 40) << label;
}

TEST(Synthetic, MakesRegressionAndRefusesBoth) {
  EXPECT_EQ(make_synthetic({.samples = 2, .features = 3, .classes = 0, .outputs = 5}).outputs(), 5);
  EXPECT_THROW(make_synthetic({.samples = 2, .features = 3, .classes = 2, .outputs = 5}), InputError);
  EXPECT_THROW(make_synthetic({.samples = 0}), InputError);
}

class LoadIdx : public ::testing::Test {
 protected:
  Dataset load(std::string_view labels_content, Elements classes = 0) {
    return load_idx(
        {folder_.write("images.idx3", three_images()), folder_.write("labels.idx", labels_content), classes});
  }
  template <class... Parts>
  void expect_refused(std::string_view labels_content, Elements classes, const Parts&... parts) {
    EXPECT_THAT([&] { load(labels_content, classes); }, ThrowsMessage<InputError>(AllOf(HasSubstr(parts)...)));
  }
  TemporaryFolder folder_;
};

TEST_F(LoadIdx, ReadsClassesFromIntegers) {
  const Dataset set = load(labels({2, 0, 1}));
  EXPECT_EQ(set.samples(), 3);
  EXPECT_EQ(set.features(), 4);
  EXPECT_EQ(set.classes(), 3);
  const auto rows = gather<float>(set, {1});
  EXPECT_THAT(rows.features, ElementsAre(5 / 255.f, 6 / 255.f, 7 / 255.f, 8 / 255.f));
  EXPECT_THAT(rows.labels, ElementsAre(0));
}

TEST_F(LoadIdx, ReadsRegressionFromReals) {
  EXPECT_THAT(gather<float>(load(idx_header(0x0D, {3}) + floats({1, 2, 3})), {2}).values, ElementsAre(3));
  const Dataset two = load(idx_header(0x0D, {3, 2}) + floats({1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(two.outputs(), 2);
  EXPECT_THAT(gather<double>(two, {1}).values, ElementsAre(3, 4));
}

TEST_F(LoadIdx, RefusesFilesThatDoNotBelongTogether) {
  expect_refused(labels({0, 1, 2, 1}), 10, "4 labels for 3 images", "labels.idx', u8 [4]",
                 "images.idx3', u8 [3, 2, 2]");
  expect_refused(labels({0, 1, 10}), 10, "labels.idx", "label 10 of sample 2 at byte 10 is not in [0, 10)",
                 "images.idx3");
  expect_refused(idx_header(0x0B, {3}) + std::string("\0\1\xff\xff\0\1", 6), 0, "label -1 of sample 1 at byte 10");
  expect_refused(three_images(), 10, "rank 3 at byte 3, at most 1 wanted", "swapped");
  expect_refused(idx_header(0x0D, {3}) + floats({1, 2, 3}), 10, "reals, but 10 classes");
}

TEST(FashionMnist, IsReadWhole) {
  const std::filesystem::path folder = "/usr/share/datasets/fashion-mnist";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "Debian's package dataset-fashion-mnist is not installed";
  const Dataset set = load_idx({folder / "train-images-idx3-ubyte", folder / "train-labels-idx1-ubyte"});
  EXPECT_EQ(set.samples(), 60000);
  EXPECT_EQ(set.features(), 28 * 28);
  EXPECT_EQ(set.classes(), 10);
  std::map<std::int32_t, int> histogram;
  for (Elements i = 0; i < set.samples(); ++i) ++histogram[gather<float>(set, {i}).labels[0]];
  EXPECT_THAT(histogram, Each(Pair(AllOf(::testing::Ge(0), ::testing::Lt(10)), 6000)));
}

}  // namespace
}  // namespace annulet::data
