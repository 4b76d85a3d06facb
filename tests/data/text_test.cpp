#include "annulet/data/text.hpp"

#include <gmock/gmock.h>

#include <fstream>

#include "annulet/base/error.hpp"
#include "base/temporary_folder.hpp"

namespace annulet::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

std::span<const std::uint8_t> bytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

std::vector<std::uint16_t> counting(std::uint16_t count) {
  std::vector<std::uint16_t> tokens;
  for (std::uint16_t t = 0; t < count; ++t) tokens.push_back(t);
  return tokens;
}

// Tokens and labels of some windows.
struct Drawn {
  Drawn(const Windows& windows, const std::vector<Elements>& indices)
      : tokens(indices.size() * static_cast<std::size_t>(windows.shape().tokens)), labels(tokens.size()) {
    windows.gather(indices, Rows<float>{{}, tokens, labels, {}});
  }
  std::vector<std::int32_t> tokens, labels;
};

TEST(Vocabulary, IsTheBytesThatOccur) {
  const Vocabulary vocabulary = Vocabulary::of(bytes("banana\n\xff"));
  EXPECT_EQ(vocabulary.size(), 5);
  EXPECT_EQ(vocabulary.to_text(), "10 97 98 110 255");
  EXPECT_THAT(vocabulary.encode(bytes("nab"), "prompt"), ElementsAre(3, 1, 2));
  EXPECT_EQ(vocabulary.byte(3), 'n');
  EXPECT_THAT([&] { vocabulary.encode(bytes("nabe"), "prompt"); },
              ThrowsMessage<InputError>(HasSubstr("prompt: 'e' at place 3 is not in the vocabulary")));
}

TEST(Vocabulary, ComesBackFromItsText) {
  EXPECT_EQ(Vocabulary::parse("10 97 255").to_text(), "10 97 255");
  for (const char* bad : {"", "10 9", "256", "-1", "10 x", "10 32 -", "10 32 99999999999", "10 10"})
    EXPECT_THROW(Vocabulary::parse(bad), InputError) << bad;
}

TEST(Windows, OfTrainingStartAnywhereByTheNumberOfTheDrawAlone) {
  const Windows::Options options{.context = 3, .classes = 10, .seed = 4};
  const Windows windows(counting(10), options, "t"), again(counting(10), options, "t");
  EXPECT_EQ(windows.samples(), 3);
  EXPECT_TRUE(windows.random());
  std::vector<int> starts(7);  // 0 to 6: a window, and the token that follows
  for (Elements i = 0; i < 700; ++i) {
    const Elements start = windows.start(i);
    ASSERT_EQ(start, again.start(i));
    ASSERT_TRUE(start >= 0 && start <= 6);
    ++starts[static_cast<std::size_t>(start)];
  }
  EXPECT_THAT(starts, testing::Each(testing::AllOf(testing::Gt(60), testing::Lt(140))));
  const auto first = static_cast<int>(windows.start(12345));
  const Drawn drawn(windows, {12345});
  EXPECT_THAT(drawn.tokens, ElementsAre(first, first + 1, first + 2));
  EXPECT_THAT(drawn.labels, ElementsAre(first + 1, first + 2, first + 3));
}

TEST(Windows, OfEvaluationForetellEveryTokenOnce) {
  const Windows windows(counting(9), {.context = 3, .order = Windows::Order::consecutive, .classes = 9}, "t");
  EXPECT_EQ(windows.samples(), 3);
  EXPECT_EQ(windows.targets(), 8);
  const Drawn drawn(windows, {0, 1, 2});
  EXPECT_THAT(drawn.tokens, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 0));
  EXPECT_THAT(drawn.labels, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, kNoLabel));
  EXPECT_EQ(Windows(counting(10), {.context = 3, .order = Windows::Order::consecutive}, "t").samples(), 3);
}

TEST(Text, IsSplitAndEncodedByOneVocabulary) {
  const annulet::test::TemporaryFolder folder;
  std::ofstream(folder / "t.txt") << "aaaaaaaaaaaaaaaaaazb";  // the last two only in the validation part
  const Text text = load_text({.file = folder / "t.txt", .validation = 0.1, .context = 4});
  EXPECT_EQ(text.vocabulary.to_text(), "97 98 122");
  EXPECT_EQ(text.train.samples(), 4);
  EXPECT_EQ(text.train.shape().classes, 3);
  ASSERT_TRUE(text.validation);
  EXPECT_THAT(Drawn(*text.validation, {0}).labels, ElementsAre(1, kNoLabel, kNoLabel, kNoLabel));
  EXPECT_FALSE(load_text({.file = folder / "t.txt", .validation = 0, .context = 4}).validation);
}

TEST(Text, IsRefusedWhereItHoldsNoWindow) {
  const annulet::test::TemporaryFolder folder;
  std::ofstream(folder / "short.txt") << "abcde";
  const auto load = [&](const TextOptions& options) { return [options] { load_text(options); }; };
  EXPECT_THAT(load({.file = folder / "short.txt", .validation = 0, .context = 5}),
              ThrowsMessage<InputError>(HasSubstr("short.txt has 5 tokens, at least 6")));
  EXPECT_THAT(load({.file = folder / "short.txt", .validation = 0.2, .context = 3}),
              ThrowsMessage<InputError>(HasSubstr("validation part of")));
  EXPECT_THAT(load({.file = folder / "short.txt", .validation = 1}),
              ThrowsMessage<InputError>(HasSubstr("validation part of 1 ")));
  EXPECT_THROW(load_text({.file = folder / "missing.txt"}), InputError);
}

TEST(Text, OfOtherDataHasAnotherFingerprint) {
  const Windows windows = make_synthetic_text(100, {.context = 4, .classes = 5, .seed = 1});
  EXPECT_EQ(windows.fingerprint(), make_synthetic_text(100, {.context = 4, .classes = 5, .seed = 1}).fingerprint());
  EXPECT_NE(windows.fingerprint(), make_synthetic_text(100, {.context = 4, .classes = 5, .seed = 2}).fingerprint());
  EXPECT_NE(windows.fingerprint(), make_synthetic_text(100, {.context = 5, .classes = 5, .seed = 1}).fingerprint());
  EXPECT_THROW(make_synthetic_text(100, {.classes = 0}), InputError);
}

}  // namespace
}  // namespace annulet::data
