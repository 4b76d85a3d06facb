#include "annulet/data/idx.hpp"

#include <gmock/gmock.h>

#include "annulet/base/error.hpp"
#include "base/temporary_folder.hpp"
#include "data/idx_files.hpp"

namespace annulet::data {
namespace {

using annulet::test::TemporaryFolder;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using namespace testing;

class Idx : public ::testing::Test {
 protected:
  IdxArray read(std::string_view name, std::string_view content) { return read_idx(folder_.write(name, content)); }

  // The file is refused with its name and every one of `parts` in the message.
  template <class... Parts>
  void expect_refused(std::string_view name, std::string_view content, const Parts&... parts) {
    EXPECT_THAT([&] { read(name, content); },
                ThrowsMessage<InputError>(AllOf(HasSubstr(std::string(name)), HasSubstr(parts)...)));
  }

  TemporaryFolder folder_;
};

TEST_F(Idx, ReadsBytes) {
  const IdxArray images = read("images.idx3", three_images());
  EXPECT_THAT(images.shape, ElementsAre(3, 2, 2));
  EXPECT_EQ(images.values_per_item(), 4);
  EXPECT_EQ(images.place(2), Bytes(24));
  EXPECT_THAT(decode<std::int32_t>(images), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12));
}

TEST_F(Idx, ReadsBigEndianNumbersOfEachType) {
  EXPECT_THAT(decode<std::int32_t>(read("short.idx1", idx_header(0x0B, {2}) + std::string("\xff\xff\x01\x00", 4))),
              ElementsAre(-1, 256));
  EXPECT_THAT(decode<std::int32_t>(read("signed.idx1", idx_header(0x09, {2}) + "\x80\x7f")), ElementsAre(-128, 127));
  EXPECT_THAT(
      decode<std::int32_t>(read("int.idx1", idx_header(0x0C, {2}) + big_endian(70000) + big_endian(0xfffffffe))),
      ElementsAre(70000, -2));
  EXPECT_THAT(decode<float>(read("float.idx2", idx_header(0x0D, {2, 2}) + floats({1, 2.5f, -3, 4}))),
              ElementsAre(1, 2.5f, -3, 4));
  EXPECT_THAT(
      decode<double>(read("double.idx1", idx_header(0x0E, {1}) + big_endian(0x40091eb8) + big_endian(0x51eb851f))),
      ElementsAre(3.14));
}

TEST_F(Idx, TellsGzipByItsContent) {
  EXPECT_EQ(read("gz-without-suffix.idx3", gzip(three_images())).bytes.size(), 12);
  EXPECT_EQ(read("not-gz.idx3.gz", three_images()).bytes.size(), 12);
}

TEST_F(Idx, ReadsGzipMembersAsOneStream) {
  const std::string all = three_images();
  const IdxArray images = read("twomember.idx3.gz", gzip(all.substr(0, 19)) + gzip(all.substr(19)));
  EXPECT_EQ(std::string(images.bytes.begin(), images.bytes.end()), counting(12));
}

TEST_F(Idx, RefusesTruncatedFilesWithBothSizes) {
  expect_refused("empty.idx3", "", "the magic number at byte 0 has 0 of 4 bytes", "empty");
  expect_refused("truncated-header.idx3", three_images().substr(0, 11), "the 3 sizes at byte 4 has 7 of 12 bytes");
  expect_refused("truncated-body.idx3", three_images().substr(0, 20), "4 B found", "12 B wanted for u8 [3, 2, 2]");
  expect_refused("short-body.idx3.gz", gzip(three_images().substr(0, 20)), "4 B found", "12 B wanted");
}

TEST_F(Idx, RefusesGzipCutAtAnyByte) {
  const std::string whole = gzip(three_images());
  for (std::size_t length = 2; length < whole.size(); ++length) {
    expect_refused("truncated.idx3.gz", whole.substr(0, length), "the file ends inside the gzip stream");
  }
}

TEST_F(Idx, RefusesDamagedGzip) {
  std::string bytes = gzip(three_images());
  bytes[bytes.size() - 8] ^= 1;
  expect_refused("badcrc.idx3.gz", bytes, "incorrect data check", "none of its data is used");
  expect_refused("garbage-after.idx3.gz", gzip(three_images()) + "garbage", "incorrect header check");
}

TEST_F(Idx, RefusesSizesThatDoNotFitTheFileBeforeAllocating) {
  expect_refused("little-endian.idx3", idx_header(0x08, {3u << 24, 2u << 24, 2u << 24}) + counting(12), "12 B found",
                 "[50331648, 33554432, 33554432]", "look little-endian");
  expect_refused("huge-dims.idx3", idx_header(0x08, {~0u, ~0u, ~0u}) + counting(12), "more than 2^63 B");
  expect_refused("huge-dims.idx1", idx_header(0x08, {1u << 31}) + counting(12), "2147483648 B wanted");
  expect_refused("huge-dims.idx3.gz", gzip(idx_header(0x08, {1u << 31}) + counting(12)), "at most",
                 "2147483648 B wanted");
  expect_refused("trailing.idx3", three_images() + "x", "too long: 13 B found", "12 B wanted");
  expect_refused("trailing.idx3.gz", gzip(three_images() + "x"), "too long: more than 12 B", "12 B wanted");
  expect_refused("zero-items.idx3", idx_header(0x08, {0, 28, 28}), "no items: size 1 of 3 at byte 4 is 0");
}

TEST_F(Idx, RefusesWhatIsNotIdxAndSaysWhatItLooksLike) {
  expect_refused("html.idx3.gz", "<!DOCTYPE html><html>404</html>", "3c 21 44 4f", "not gzip", "web page");
  expect_refused("text.gz", "hello world", "named .gz and is neither gzip nor IDX");
  expect_refused("bad-type.idx1", idx_header(0x0A, {1}) + "x", "00 00 0a 01");
  expect_refused("rank-zero.idx0", idx_header(0x08, {}) + "x", "00 00 08 00");
  expect_refused("little-endian-magic.idx1", std::string("\x01\x08\x00\x00", 4), "looks little-endian");
}

TEST_F(Idx, FindsBothSpellings) {
  const auto expect_found = [&](const char* wanted, const char* there) {
    const TemporaryFolder folder;
    folder.write(there, three_images());
    EXPECT_EQ(read_idx(folder / wanted).file.filename(), there);
  };
  expect_found("train-images-idx3-ubyte", "train-images.idx3-ubyte");
  expect_found("train-images.idx3-ubyte", "train-images-idx3-ubyte.gz");
  expect_found("train-images-idx3-ubyte.gz", "train-images-idx3-ubyte");
  expect_found("train-images.idx3-ubyte.gz", "train-images-idx3-ubyte.gz");
}

TEST_F(Idx, NamesAllSpellingsOfAMissingFile) {
  EXPECT_THAT([&] { read_idx(folder_ / "a-idx1-ubyte"); },
              ThrowsMessage<InputError>(HasSubstr("a-idx1-ubyte, a-idx1-ubyte.gz, a.idx1-ubyte, a.idx1-ubyte.gz")));
  EXPECT_THAT([&] { read_idx(folder_ / ""); }, ThrowsMessage<InputError>(HasSubstr("not a regular file")));
}

}  // namespace
}  // namespace annulet::data
