// The reading half of the format. What the header says is not believed until it has been checked.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "annulet/base/error.hpp"
#include "annulet/data/safetensors.hpp"

namespace annulet::data {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr std::uint64_t kLongestHeader = 100'000'000;  // the format's own limit

[[noreturn]] void refuse(const fs::path& file, const std::string& what) {
  throw InputError({fmt::format("'{}' is not a whole safetensors file: {}", file.string(), what), "none of it is used",
                    "Take another copy of the file or an earlier checkpoint"});
}

// A name from a damaged file can be long.
std::string quoted(const std::string& name) { return fmt::format("tensor '{:.80}'", name); }

// Where a tensor says that it lies.
struct Claim {
  NamedTensor tensor;
  std::uint64_t begin = 0, end = 0;
};

// Keys of each open object: JSON parsers keep the last of two equal keys and say nothing.
class DuplicateFinder {
 public:
  bool operator()(int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) open_.emplace_back();
    if (event == Json::parse_event_t::object_end) open_.pop_back();
    if (event == Json::parse_event_t::key && !open_.back().insert(parsed.get<std::string>()).second && !duplicate_) {
      duplicate_ = parsed.get<std::string>();
    }
    return true;
  }
  const std::optional<std::string>& duplicate() const { return duplicate_; }

 private:
  std::vector<std::set<std::string>> open_;
  std::optional<std::string> duplicate_;
};

std::uint64_t size_of_file(const fs::path& file) {
  std::error_code error;
  const std::uint64_t size = fs::file_size(file, error);
  if (error) {
    throw InputError({fmt::format("cannot read '{}': {}", file.string(), error.message()), "", "Check the path"});
  }
  return size;
}

void read_exactly(std::ifstream& stream, const fs::path& file, std::span<std::byte> into) {
  stream.read(reinterpret_cast<char*>(into.data()), static_cast<std::streamsize>(into.size()));
  if (static_cast<std::size_t>(stream.gcount()) != into.size()) refuse(file, "it ended while it was read");
}

std::string read_header(std::ifstream& stream, const fs::path& file, std::uint64_t file_size) {
  if (file_size < 8) refuse(file, fmt::format("it has {} bytes, and the header length alone takes 8", file_size));
  std::uint64_t length = 0;
  read_exactly(stream, file, std::as_writable_bytes(std::span(&length, 1)));
  if (length > file_size - 8 || length > kLongestHeader) {
    refuse(file, fmt::format("a header of {} bytes (at byte 0) does not fit: {} follow, {} are allowed", length,
                             file_size - 8, kLongestHeader));
  }
  std::string header(length, '\0');
  read_exactly(stream, file, std::as_writable_bytes(std::span(header)));
  return header;
}

Json parse_header(const fs::path& file, const std::string& text) {
  DuplicateFinder finder;
  Json header = Json::parse(text, std::ref(finder), false);
  if (!header.is_object()) refuse(file, "its header is not a JSON object");
  if (finder.duplicate()) refuse(file, fmt::format("'{:.80}' appears twice in its header", *finder.duplicate()));
  return header;
}

Metadata read_metadata(const fs::path& file, const Json& entry) {
  if (!entry.is_object()) refuse(file, "__metadata__ is not a map of strings");
  Metadata metadata;
  for (const auto& [key, value] : entry.items()) {
    if (!value.is_string()) refuse(file, fmt::format("__metadata__ '{:.80}' is not a string", key));
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

Dtype read_dtype(const fs::path& file, const std::string& name, const Json& entry) {
  const auto dtype = entry.find("dtype");
  if (dtype == entry.end() || !dtype->is_string()) refuse(file, quoted(name) + " has no dtype");
  if (*dtype == "F32") return Dtype::f32;
  if (*dtype == "F64") return Dtype::f64;
  refuse(file, fmt::format("{} has dtype {:.20}, F32 or F64 wanted", quoted(name), dtype->get<std::string>()));
}

// An array of whole numbers that are not negative and fit Elements.
std::vector<Elements> read_numbers(const fs::path& file, const std::string& name, const Json& entry,
                                   const char* field) {
  const auto list = entry.find(field);
  if (list == entry.end() || !list->is_array()) refuse(file, fmt::format("{} has no {}", quoted(name), field));
  std::vector<Elements> numbers;
  for (const Json& number : *list) {
    if (!number.is_number_unsigned() || number.get<std::uint64_t>() >> 63 != 0) {
      refuse(file, fmt::format("{} has a {} that is not of whole numbers below 2^63", quoted(name), field));
    }
    numbers.push_back(number.get<Elements>());
  }
  return numbers;
}

Claim read_claim(const fs::path& file, const std::string& name, const Json& entry) {
  if (!entry.is_object()) refuse(file, quoted(name) + " is not described by an object");
  Claim claim;
  claim.tensor = {name, read_dtype(file, name, entry), read_numbers(file, name, entry, "shape"), {}};
  const std::vector<Elements> offsets = read_numbers(file, name, entry, "data_offsets");
  if (offsets.size() != 2 || offsets[0] > offsets[1]) {
    refuse(file, quoted(name) + " has data_offsets that are not [begin, end]");
  }
  claim.begin = static_cast<std::uint64_t>(offsets[0]);
  claim.end = static_cast<std::uint64_t>(offsets[1]);
  return claim;
}

void check_size(const fs::path& file, const Claim& claim) {
  std::int64_t bytes = size_of(claim.tensor.dtype).value();
  bool fits = true;
  for (const Elements size : claim.tensor.shape) fits = fits && !__builtin_mul_overflow(bytes, size, &bytes);
  if (fits && static_cast<std::uint64_t>(bytes) == claim.end - claim.begin) return;
  refuse(file, fmt::format("{} takes {} bytes by its data_offsets and {} by its shape", quoted(claim.tensor.name),
                           claim.end - claim.begin, fits ? std::to_string(bytes) : "more than 2^63"));
}

// One after the other, without overlap, hole or rest.
void check_places(const fs::path& file, std::vector<Claim>& claims, std::uint64_t body) {
  std::ranges::sort(claims, {}, [](const Claim& claim) { return std::pair(claim.begin, claim.end); });
  std::uint64_t place = 0;
  for (const Claim& claim : claims) {
    const std::string name = quoted(claim.tensor.name);
    if (claim.end > body) refuse(file, fmt::format("{} ends at byte {} of {}", name, claim.end, body));
    if (claim.begin < place) refuse(file, fmt::format("{} overlaps the one before it", name));
    if (claim.begin > place)
      refuse(file, fmt::format("{} bytes before {} belong to no tensor", claim.begin - place, name));
    check_size(file, claim);
    place = claim.end;
  }
  if (place != body) refuse(file, fmt::format("{} bytes after the last tensor belong to none", body - place));
}

}  // namespace

SafetensorsFile::SafetensorsFile(fs::path file) : file_(std::move(file)) {
  const std::uint64_t size = size_of_file(file_);
  std::ifstream stream(file_, std::ios::binary);
  if (!stream) {
    throw InputError({fmt::format("cannot read '{}': {}", file_.string(), std::generic_category().message(errno)), "",
                      "Check its permissions"});
  }
  const std::string text = read_header(stream, file_, size);
  const Json header = parse_header(file_, text);
  std::vector<Claim> claims;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__")
      metadata_ = read_metadata(file_, entry);
    else
      claims.push_back(read_claim(file_, name, entry));
  }
  check_places(file_, claims, size - 8 - text.size());
  body_.resize(size - 8 - text.size());
  read_exactly(stream, file_, body_);
  for (Claim& claim : claims) {
    claim.tensor.bytes = std::span(std::as_const(body_)).subspan(claim.begin, claim.end - claim.begin);
    tensors_.push_back(std::move(claim.tensor));
  }
}

const NamedTensor& SafetensorsFile::at(const std::string& name) const {
  const auto found = std::ranges::find(tensors_, name, &NamedTensor::name);
  if (found != tensors_.end()) return *found;
  throw InputError({fmt::format("'{}' has no {}", file_.string(), quoted(name)), "it was written for another model",
                    "Check the model's sizes and the file"});
}

}  // namespace annulet::data
