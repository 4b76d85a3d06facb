#include "annulet/data/safetensors.hpp"

#include <gmock/gmock.h>

#include <cstring>

#include "annulet/base/error.hpp"
#include "base/temporary_folder.hpp"

namespace annulet::data {
namespace {

using annulet::test::content_of;
using annulet::test::TemporaryFolder;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

template <class T>
NamedTensor tensor(std::string name, std::vector<Elements> shape, const std::vector<T>& values) {
  return {std::move(name), kDtypeOf<T>, std::move(shape), std::as_bytes(std::span(values))};
}

template <class T>
std::vector<T> values_of(const NamedTensor& tensor, std::size_t count) {
  std::vector<T> values(count);
  copy_values<T>(tensor, values);
  return values;
}

std::string with_header(std::string_view header, std::size_t body) {
  const std::uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes.append(header).append(body, 'x');
}

class Safetensors : public ::testing::Test {
 protected:
  template <class... Parts>
  void expect_refused(std::string_view content, const Parts&... parts) {
    const auto file = folder_.write("bad.safetensors", content);
    EXPECT_THAT([&] { SafetensorsFile{file}; },
                ThrowsMessage<InputError>(AllOf(HasSubstr("bad.safetensors"), HasSubstr(parts)...)));
  }

  TemporaryFolder folder_;
  const std::vector<float> weight_{1, 2, 3, 4, 5, 6}, none_{};
  const std::vector<double> scale_{0.1};
};

TEST_F(Safetensors, GivesBackWhatWasWritten) {
  const std::vector tensors{tensor("weight", {2, 3}, weight_), tensor("scale", {}, scale_),
                            tensor("none", {0, 4}, none_)};
  write_safetensors(folder_ / "model", tensors, {{"step", "7"}, {"text", "\"\n\xc3\xa9"}});
  const SafetensorsFile moved = [&] { return SafetensorsFile(folder_ / "model"); }();
  EXPECT_EQ(moved.tensors().size(), 3);
  EXPECT_EQ(moved.metadata(), (Metadata{{"step", "7"}, {"text", "\"\n\xc3\xa9"}}));
  EXPECT_THAT(moved.at("weight").shape, ElementsAre(2, 3));
  EXPECT_THAT(values_of<float>(moved.at("weight"), 6), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(values_of<double>(moved.at("weight"), 6), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(values_of<double>(moved.at("scale"), 1), ElementsAre(0.1));
  EXPECT_TRUE(moved.at("none").bytes.empty());
  EXPECT_THAT([&] { moved.at("bias"); }, ThrowsMessage<InputError>(HasSubstr("has no tensor 'bias'")));
}

TEST_F(Safetensors, WritesTheSameBytesWhateverTheOrder) {
  const NamedTensor a = tensor("a", {6}, weight_), b = tensor("b", {1}, scale_);
  write_safetensors(folder_ / "one", std::vector{a, b});
  write_safetensors(folder_ / "two", std::vector{b, a});
  const std::string expected =
      R"({"b":{"dtype":"F64","shape":[1],"data_offsets":[0,8]},"a":{"dtype":"F32","shape":[6],"data_offsets":[8,32]}})";
  const std::string bytes = content_of(folder_ / "one");
  EXPECT_EQ(bytes, content_of(folder_ / "two"));
  EXPECT_EQ(bytes.substr(0, 8), std::string("\x70\0\0\0\0\0\0\0", 8));  // a multiple of 8: spaces follow the JSON
  EXPECT_EQ(bytes.substr(8, 112), expected + std::string(112 - expected.size(), ' '));
  EXPECT_EQ(bytes.size(), 8 + 112 + 8 + 24);
}

TEST_F(Safetensors, AWriteThatFailsLeavesNothing) {
  EXPECT_THROW(write_safetensors(folder_ / "missing/model", std::vector{tensor("a", {6}, weight_)}), InputError);
  EXPECT_THROW(write_safetensors(folder_ / "model", std::vector{tensor("a", {7}, weight_)}), ContractError);
  EXPECT_THROW(write_safetensors(folder_ / "model", std::vector(2, tensor("a", {6}, weight_))), ContractError);
  EXPECT_TRUE(folder_.names().empty());
}

TEST_F(Safetensors, ReadsAnEmptyFileOfTensors) {
  write_safetensors(folder_ / "model", {});
  EXPECT_TRUE(SafetensorsFile(folder_ / "model").tensors().empty());
}

TEST_F(Safetensors, RefusesEveryTruncation) {
  write_safetensors(folder_ / "model", std::vector{tensor("a", {6}, weight_)});
  const std::string whole = content_of(folder_ / "model");
  for (std::size_t length = 0; length < whole.size(); ++length) expect_refused(whole.substr(0, length));
  expect_refused(whole + "x", "1 bytes after the last tensor");
}

TEST_F(Safetensors, RefusesHeadersThatAreNotWellFormed) {
  expect_refused("1234567", "7 bytes");
  expect_refused(std::string(8, '\xff') + "{}", "18446744073709551615 bytes");
  expect_refused(with_header("{", 0), "not a JSON object");
  expect_refused(with_header("[]", 0), "not a JSON object");
  expect_refused(with_header(std::string(100000, '['), 0), "not a JSON object");
  expect_refused(with_header("{\"\xff\":1}", 0), "not a JSON object");
  expect_refused(with_header(R"({"__metadata__":{"a":1}})", 0), "__metadata__ 'a' is not a string");
  expect_refused(with_header(R"({"a":3})", 0), "tensor 'a' is not described by an object");
}

TEST_F(Safetensors, RefusesTensorsThatDoNotFitTheFile) {
  const auto refused = [&](std::string_view entries, std::size_t body, const char* text) {
    expect_refused(with_header(entries, body), text);
  };
  refused(R"({"a":{"shape":[1],"data_offsets":[0,4]}})", 4, "tensor 'a' has no dtype");
  refused(R"({"a":{"dtype":"I7","shape":[1],"data_offsets":[0,4]}})", 4, "tensor 'a' has dtype I7");
  refused(R"({"a":{"dtype":"F32","data_offsets":[0,4]}})", 4, "tensor 'a' has no shape");
  refused(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4, "shape that is not of whole numbers");
  refused(R"({"a":{"dtype":"F32","shape":[1e3],"data_offsets":[0,4]}})", 4, "shape that is not of whole numbers");
  refused(R"({"a":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4]}})", 4, "below 2^63");
  refused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4, "not [begin, end]");
  refused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", 4, "not [begin, end]");
  refused(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 4, "tensor 'a' ends at byte 8 of 4");
  refused(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4,
          "4 bytes by its data_offsets and 8 by its shape");
  refused(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0, "more than 2^63");
}

TEST_F(Safetensors, RefusesOverlapsHolesAndDuplicates) {
  const std::string a = R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  expect_refused(with_header("{" + a + R"(,"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})", 12),
                 "tensor 'b' overlaps");
  expect_refused(with_header("{" + a + R"(,"b":{"dtype":"F32","shape":[1],"data_offsets":[12,16]}})", 16),
                 "4 bytes before tensor 'b' belong to no tensor");
  expect_refused(with_header("{" + a + "," + a + "}", 8), "'a' appears twice");
}

TEST_F(Safetensors, NamesAMissingFile) {
  EXPECT_THAT([&] { SafetensorsFile(folder_ / "missing"); },
              ThrowsMessage<InputError>(HasSubstr("missing': No such file or directory")));
  EXPECT_THROW(SafetensorsFile(folder_ / ""), InputError);
}

}  // namespace
}  // namespace annulet::data
