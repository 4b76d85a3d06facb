#include "annulet/data/safetensors.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <tuple>

#include "annulet/base/atomic_file.hpp"
#include "annulet/base/error.hpp"

namespace annulet::data {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors are little-endian, and so must the machine be");

using OrderedJson = nlohmann::ordered_json;

void check(const NamedTensor& tensor) {
  Elements count = 1;
  for (const Elements size : tensor.shape) count *= size;
  ANNULET_EXPECTS(std::ssize(tensor.bytes) == count * size_of(tensor.dtype).value(), "bytes fit shape and dtype");
  ANNULET_EXPECTS(tensor.name != "__metadata__", "the format keeps this name for itself");
}

std::vector<NamedTensor> in_file_order(std::span<const NamedTensor> tensors) {
  std::vector<NamedTensor> ordered(tensors.begin(), tensors.end());
  const auto key = [](const NamedTensor& t) { return std::tuple(-size_of(t.dtype).value(), std::string_view(t.name)); };
  std::ranges::sort(ordered, {}, key);
  return ordered;
}

std::string header_of(std::span<const NamedTensor> tensors, const Metadata& metadata) {
  OrderedJson header = OrderedJson::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::size_t place = 0;
  for (const NamedTensor& tensor : tensors) {
    check(tensor);
    ANNULET_EXPECTS(!header.contains(tensor.name), "names are unique");
    header[tensor.name] = {{"dtype", tensor.dtype == Dtype::f32 ? "F32" : "F64"},
                           {"shape", tensor.shape},
                           {"data_offsets", {place, place + tensor.bytes.size()}}};
    place += tensor.bytes.size();
  }
  std::string text = header.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

template <class From, class T>
void convert(std::span<const std::byte> bytes, std::span<T> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    From value;
    std::memcpy(&value, bytes.data() + i * sizeof(From), sizeof(From));
    out[i] = static_cast<T>(value);
  }
}

}  // namespace

Bytes size_of(Dtype dtype) { return Bytes(dtype == Dtype::f32 ? 4 : 8); }

void write_safetensors(const std::filesystem::path& file, std::span<const NamedTensor> tensors,
                       const Metadata& metadata) {
  const std::vector<NamedTensor> ordered = in_file_order(tensors);
  const std::string header = header_of(ordered, metadata);
  const std::uint64_t length = header.size();
  AtomicFile out(file);
  out.write(std::as_bytes(std::span(&length, 1)));
  out.write(header);
  for (const NamedTensor& tensor : ordered) out.write(tensor.bytes);
  out.commit();
}

template <class T>
void copy_values(const NamedTensor& tensor, std::span<T> out) {
  ANNULET_EXPECTS(std::ssize(tensor.bytes) == std::ssize(out) * size_of(tensor.dtype).value(), "out fits the tensor");
  tensor.dtype == Dtype::f32 ? convert<float>(tensor.bytes, out) : convert<double>(tensor.bytes, out);
}

template void copy_values(const NamedTensor&, std::span<float>);
template void copy_values(const NamedTensor&, std::span<double>);

}  // namespace annulet::data
