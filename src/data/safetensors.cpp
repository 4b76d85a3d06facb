#include "annulet/data/safetensors.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <tuple>

#include "annulet/base/error.hpp"

namespace annulet::data {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors are little-endian, and so must the machine be");

using OrderedJson = nlohmann::ordered_json;

Bytes bytes_of(const NamedTensor& tensor) {
  Elements count = 1;
  for (const Elements size : tensor.shape) count *= size;
  return count * size_of(tensor.dtype);
}

// Numbers of tensors, as they lie in the file.
std::vector<std::size_t> file_order(std::span<const NamedTensor> tensors) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t t) {
    return std::tuple(-size_of(tensors[t].dtype).value(), std::string_view(tensors[t].name));
  });
  return order;
}

std::string header_of(std::span<const NamedTensor> tensors, const Metadata& metadata) {
  OrderedJson header = OrderedJson::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  Bytes place{0};
  for (const std::size_t t : file_order(tensors)) {
    const NamedTensor& tensor = tensors[t];
    ANNULET_EXPECTS(tensor.name != "__metadata__", "the format keeps this name for itself");
    ANNULET_EXPECTS(!header.contains(tensor.name), "names are unique");
    const Bytes end = place + bytes_of(tensor);
    header[tensor.name] = {{"dtype", tensor.dtype == Dtype::f32 ? "F32" : "F64"},
                           {"shape", tensor.shape},
                           {"data_offsets", {place.value(), end.value()}}};
    place = end;
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

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& file, std::span<const NamedTensor> tensors,
                                     const Metadata& metadata)
    : file_(file), begins_(tensors.size()), sizes_(tensors.size()) {
  const std::string header = header_of(tensors, metadata);
  const std::uint64_t length = header.size();
  file_.write(std::as_bytes(std::span(&length, 1)));
  file_.write(header);
  const Bytes first(static_cast<std::int64_t>(sizeof length + header.size()));
  for (const std::size_t t : file_order(tensors)) {
    begins_[t] = first + missing_, sizes_[t] = bytes_of(tensors[t]);
    missing_ += sizes_[t];
  }
}

void SafetensorsWriter::write(std::size_t tensor, Bytes first, std::span<const std::byte> bytes) {
  const Bytes count(std::ssize(bytes));
  ANNULET_EXPECTS(first >= Bytes(0) && first + count <= sizes_[tensor], "bytes are the tensor's");
  file_.write_at((begins_[tensor] + first).value(), bytes);
  missing_ -= count;
}

void SafetensorsWriter::commit() {
  ANNULET_EXPECTS(missing_ == Bytes(0), "all bytes of all tensors are written once");
  file_.commit();
}

void write_safetensors(const std::filesystem::path& file, std::span<const NamedTensor> tensors,
                       const Metadata& metadata) {
  SafetensorsWriter writer(file, tensors, metadata);
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    ANNULET_EXPECTS(Bytes(std::ssize(tensors[t].bytes)) == bytes_of(tensors[t]), "bytes fit shape and dtype");
    writer.write(t, Bytes(0), tensors[t].bytes);
  }
  writer.commit();
}

template <class T>
void copy_values(const NamedTensor& tensor, std::span<T> out) {
  ANNULET_EXPECTS(std::ssize(tensor.bytes) == std::ssize(out) * size_of(tensor.dtype).value(), "out fits the tensor");
  tensor.dtype == Dtype::f32 ? convert<float>(tensor.bytes, out) : convert<double>(tensor.bytes, out);
}

template void copy_values(const NamedTensor&, std::span<float>);
template void copy_values(const NamedTensor&, std::span<double>);

}  // namespace annulet::data
