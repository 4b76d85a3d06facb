#pragma once
// The safetensors format: an 8-byte little-endian header length, a JSON header {name: {dtype, shape, data_offsets}},
// then the tensors, row-major, little-endian. Written here: the same tensors give the same bytes (wider types first,
// then by name, so that each is aligned), and a file is there whole or not at all.
// Format: https://huggingface.co/docs/safetensors (section "Format").
#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "annulet/base/aligned.hpp"
#include "annulet/base/atomic_file.hpp"
#include "annulet/base/units.hpp"

namespace annulet::data {

enum class Dtype { f32, f64 };

Bytes size_of(Dtype dtype);  // of one value

template <class T>
inline constexpr Dtype kDtypeOf = sizeof(T) == sizeof(float) ? Dtype::f32 : Dtype::f64;

struct NamedTensor {
  std::string name;  // UTF-8
  Dtype dtype = Dtype::f32;
  std::vector<Elements> shape;       // empty: one value
  std::span<const std::byte> bytes;  // the caller's, or the SafetensorsFile's
};

using Metadata = std::map<std::string, std::string>;

// A file whose tensors come in pieces, in any order, so that nobody need hold all of them.
class SafetensorsWriter {
 public:
  // The bytes of `tensors` are not looked at; names are unique. Throws InputError or RunError as AtomicFile does, here
  // and below; an older file is then intact.
  SafetensorsWriter(const std::filesystem::path& file, std::span<const NamedTensor> tensors,
                    const Metadata& metadata = {});

  // Some bytes of tensors[tensor], from `first` on.
  void write(std::size_t tensor, Bytes first, std::span<const std::byte> bytes);

  // Makes the file appear. Throws ContractError unless as many bytes were written as the tensors have.
  void commit();

 private:
  AtomicFile file_;
  std::vector<Bytes> begins_, sizes_;  // [tensor]
  Bytes missing_{0};
};

// All at once; bytes fit shape.
void write_safetensors(const std::filesystem::path& file, std::span<const NamedTensor> tensors,
                       const Metadata& metadata = {});

// A file in memory. Everything the header claims is checked against the file before memory of that size is asked for.
class SafetensorsFile {
 public:
  // Throws InputError naming the file and the tensor.
  explicit SafetensorsFile(std::filesystem::path file);
  SafetensorsFile(SafetensorsFile&&) = default;
  SafetensorsFile& operator=(SafetensorsFile&&) = default;

  const std::vector<NamedTensor>& tensors() const { return tensors_; }  // in the order of their bytes
  const Metadata& metadata() const { return metadata_; }

  // The tensor of that name; throws InputError naming the file if it has none.
  const NamedTensor& at(const std::string& name) const;

 private:
  std::filesystem::path file_;
  std::vector<NamedTensor> tensors_;
  Metadata metadata_;
  AlignedVector<std::byte> body_;
};

// All values of a tensor, converted to T (float, double). `out` has as many elements as the tensor.
template <class T>
void copy_values(const NamedTensor& tensor, std::span<T> out);

}  // namespace annulet::data
