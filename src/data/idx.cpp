#include "annulet/data/idx.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <span>
#include <utility>

#include "annulet/base/error.hpp"
#include "annulet/data/byte_source.hpp"

namespace annulet::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNoPart = "a data set is read whole or not at all";

std::string_view name_of(IdxType type) {
  switch (type) {
    case IdxType::u8:
      return "u8";
    case IdxType::i8:
      return "i8";
    case IdxType::i16:
      return "i16";
    case IdxType::i32:
      return "i32";
    case IdxType::f32:
      return "f32";
    case IdxType::f64:
      return "f64";
  }
  return "";
}

std::uint32_t big_endian(std::span<const std::uint8_t> bytes) {
  return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 | std::uint32_t{bytes[2]} << 8 | bytes[3];
}

std::string describe_shape(IdxType type, std::span<const Elements> shape) {
  return fmt::format("{} [{}]", name_of(type), fmt::join(shape, ", "));
}

// What the first bytes of something that is not IDX look like.
std::string hint_for(std::span<const std::uint8_t> magic, const fs::path& file) {
  if (magic[0] == '<') return "It looks like a web page (a failed download saved as a file): download it again";
  if (magic[2] == 0 && magic[3] == 0) return "It looks little-endian: write the sizes and values big-endian";
  if (file.extension() == ".gz") return "It is named .gz and is neither gzip nor IDX: download it again";
  return "Check that it is an IDX file, such as train-images-idx3-ubyte";
}

void read_header_bytes(ByteSource& source, const fs::path& file, std::string_view field, std::span<std::uint8_t> into) {
  const Bytes place = source.position();
  const std::size_t found = source.read(into);
  if (found == into.size()) return;
  throw InputError(
      {fmt::format("'{}' ends in its header: {} at byte {} has {} of {} bytes", file.string(), field, place.value(),
                   found, into.size()),
       kNoPart,
       place == Bytes(0) && found == 0 ? "The file is empty: download it again" : "Download or write it again"});
}

struct Magic {
  IdxType type;
  std::size_t rank;
};

Magic read_magic(ByteSource& source, const fs::path& file) {
  std::array<std::uint8_t, 4> magic{};
  read_header_bytes(source, file, "the magic number", magic);
  const auto type = static_cast<IdxType>(magic[2]);
  if (magic[0] != 0 || magic[1] != 0 || name_of(type).empty() || magic[3] == 0) {
    throw InputError(
        {fmt::format("'{}' is not an IDX file: its first four bytes are {:02x}, wanted 00 00, a type of 08, "
                     "09, 0b, 0c, 0d or 0e, and a rank of at least 1",
                     file.string(), fmt::join(magic, " ")),
         source.compressed() ? "inflated from gzip" : "not gzip either", hint_for(magic, file)});
  }
  return {type, magic[3]};
}

IdxArray read_header(ByteSource& source, const fs::path& file) {
  const auto [type, rank] = read_magic(source, file);
  std::vector<std::uint8_t> sizes(4 * rank);
  read_header_bytes(source, file, fmt::format("the {} sizes", rank), sizes);
  IdxArray array{file, type, {}, {}};
  for (std::size_t i = 0; i < rank; ++i) {
    array.shape.push_back(big_endian(std::span(sizes).subspan(4 * i, 4)));
    if (array.shape.back() > 0) continue;
    throw InputError(
        {fmt::format("'{}' holds no items: size {} of {} at byte {} is 0", file.string(), i + 1, rank, 4 + 4 * i),
         "there is nothing to learn from", "Check how the file was written"});
  }
  return array;
}

// Bytes that a shape asks for; nothing where they exceed 2^63.
std::optional<Bytes> body_size(IdxType type, std::span<const Elements> shape) {
  std::int64_t total = size_of(type).value();
  for (const Elements size : shape) {
    if (__builtin_mul_overflow(total, size, &total)) return std::nullopt;
  }
  return Bytes(total);
}

bool little_endian_sizes_fit(const IdxArray& array, Bytes available) {
  std::vector<Elements> swapped;
  for (const Elements size : array.shape) swapped.push_back(__builtin_bswap32(static_cast<std::uint32_t>(size)));
  const auto body = body_size(array.type, swapped);
  return swapped != array.shape && body && *body <= available;
}

[[noreturn]] void refuse_short(const IdxArray& array, const std::string& found, const std::string& wanted,
                               Bytes available) {
  const bool swapped = little_endian_sizes_fit(array, available);
  throw InputError({fmt::format("'{}' is too short: {} found after the header, {} wanted for {}", array.file.string(),
                                found, wanted, describe_shape(array.type, array.shape)),
                    kNoPart,
                    swapped ? "Its sizes look little-endian: write them big-endian"
                            : "It was cut off or its header is wrong: download or write it again"});
}

[[noreturn]] void refuse_trailing(const IdxArray& array, const std::string& found, Bytes body) {
  throw InputError({fmt::format("'{}' is too long: {} found after the header, {} B wanted for {}", array.file.string(),
                                found, body.value(), describe_shape(array.type, array.shape)),
                    "its sizes do not describe its content", "Check how the file was written"});
}

// Before memory of that size is asked for.
Bytes checked_body_size(const IdxArray& array, const ByteSource& source) {
  const Bytes available = source.limit() - source.position();
  const auto body = body_size(array.type, array.shape);
  const std::string found = fmt::format("{}{} B", source.compressed() ? "at most " : "", available.value());
  if (!body) refuse_short(array, found, "more than 2^63 B", available);
  if (*body > available) refuse_short(array, found, fmt::format("{} B", body->value()), available);
  if (!source.compressed() && *body < available) refuse_trailing(array, found, *body);
  return *body;
}

template <class From>
From value_at(std::span<const std::uint8_t> bytes, std::size_t index) {
  using Word = std::conditional_t<sizeof(From) == 8, std::uint64_t, std::uint32_t>;
  Word word = 0;
  for (std::size_t b = 0; b < sizeof(From); ++b) word = static_cast<Word>(word << 8 | bytes[index * sizeof(From) + b]);
  if constexpr (sizeof(From) < 4) {
    return static_cast<From>(word);
  } else {
    return std::bit_cast<From>(word);
  }
}

template <class From, class T>
std::vector<T> decode_from(std::span<const std::uint8_t> bytes) {
  std::vector<T> values(bytes.size() / sizeof(From));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(value_at<From>(bytes, i));
  return values;
}

// "x-idx3-ubyte" <-> "x.idx3-ubyte"; the same name if it has neither.
std::string other_spelling(std::string name) {
  const std::size_t place = name.rfind("idx");
  if (place == std::string::npos || place == 0) return name;
  char& mark = name[place - 1];
  if (mark == '-' || mark == '.') mark = mark == '-' ? '.' : '-';
  return name;
}

}  // namespace

Bytes size_of(IdxType type) {
  switch (type) {
    case IdxType::u8:
    case IdxType::i8:
      return Bytes(1);
    case IdxType::i16:
      return Bytes(2);
    case IdxType::i32:
    case IdxType::f32:
      return Bytes(4);
    case IdxType::f64:
      return Bytes(8);
  }
  return Bytes(0);
}

Elements IdxArray::values_per_item() const {
  Elements product = 1;
  for (std::size_t i = 1; i < shape.size(); ++i) product *= shape[i];
  return product;
}

Bytes IdxArray::place(Elements item) const {
  const auto header = static_cast<std::int64_t>(4 + 4 * shape.size());
  return Bytes(header + item * values_per_item() * size_of(type).value());
}

std::string IdxArray::describe() const { return fmt::format("'{}', {}", file.string(), describe_shape(type, shape)); }

fs::path find_idx(const fs::path& path) {
  const bool zipped = path.extension() == ".gz";
  const std::string name = zipped ? path.stem().string() : path.filename().string(), other = other_spelling(name);
  std::vector<std::string> tried{path.filename().string()};
  for (const std::string& candidate : {name, name + ".gz", other, other + ".gz"}) {
    if (std::find(tried.begin(), tried.end(), candidate) == tried.end()) tried.push_back(candidate);
  }
  for (const std::string& candidate : tried) {
    std::error_code ignored;
    if (fs::exists(path.parent_path() / candidate, ignored)) return path.parent_path() / candidate;
  }
  throw InputError({fmt::format("'{}' does not exist", path.string()),
                    fmt::format("looked there for {}", fmt::join(tried, ", ")), "Check the path"});
}

IdxArray read_idx(const fs::path& path) {
  const fs::path file = find_idx(path);
  ByteSource source(file);
  IdxArray array = read_header(source, file);
  const Bytes body = checked_body_size(array, source);
  array.bytes.resize(static_cast<std::size_t>(body.value()));
  const std::size_t found = source.read(array.bytes);
  if (found < array.bytes.size()) {
    refuse_short(array, fmt::format("{} B", found), fmt::format("{} B", body.value()),
                 Bytes(static_cast<std::int64_t>(found)));
  }
  std::uint8_t beyond = 0;  // one more byte is asked for: it also makes the source check the last checksum
  if (source.read({&beyond, 1}) > 0) refuse_trailing(array, fmt::format("more than {} B", found), body);
  return array;
}

template <class T>
std::vector<T> decode(const IdxArray& array) {
  ANNULET_EXPECTS(std::is_floating_point_v<T> || !array.real(), "real values are not decoded to integers");
  switch (array.type) {
    case IdxType::u8:
      return decode_from<std::uint8_t, T>(array.bytes);
    case IdxType::i8:
      return decode_from<std::int8_t, T>(array.bytes);
    case IdxType::i16:
      return decode_from<std::int16_t, T>(array.bytes);
    case IdxType::i32:
      return decode_from<std::int32_t, T>(array.bytes);
    case IdxType::f32:
      return decode_from<float, T>(array.bytes);
    case IdxType::f64:
      return decode_from<double, T>(array.bytes);
  }
  return {};
}

template std::vector<std::int32_t> decode(const IdxArray&);
template std::vector<float> decode(const IdxArray&);
template std::vector<double> decode(const IdxArray&);

}  // namespace annulet::data
