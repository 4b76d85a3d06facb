#pragma once
// The IDX format of MNIST and its relatives: magic 00 00 TYPE RANK, RANK big-endian 32-bit sizes, then the values,
// big-endian, last index fastest. Plain or gzip, told by content. A file is read whole or refused; sizes are checked
// against the file before memory of that size is asked for.
// Format: http://yann.lecun.com/exdb/mnist (section "The IDX file format").
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "annulet/base/units.hpp"

namespace annulet::data {

enum class IdxType : std::uint8_t { u8 = 0x08, i8 = 0x09, i16 = 0x0B, i32 = 0x0C, f32 = 0x0D, f64 = 0x0E };

Bytes size_of(IdxType type);  // of one value

struct IdxArray {
  std::filesystem::path file;  // what was read (see find_idx)
  IdxType type = IdxType::u8;
  std::vector<Elements> shape;      // [items, ...], every size at least 1
  std::vector<std::uint8_t> bytes;  // the values as in the file, big-endian

  Elements items() const { return shape.front(); }
  Elements values_per_item() const;  // product of the other sizes
  bool real() const { return type == IdxType::f32 || type == IdxType::f64; }
  Bytes place(Elements item) const;  // where it starts in the inflated file
  std::string describe() const;      // "'labels.idx1', u8 [4]"
};

// `path` if it exists, or else the same name spelled "-idx" or ".idx", with or without ".gz": both spellings are about.
// Throws InputError naming all that were tried.
std::filesystem::path find_idx(const std::filesystem::path& path);

// Throws InputError with the file, the place, what was found and what was wanted.
IdxArray read_idx(const std::filesystem::path& path);

// The values in host order, rounded to T where it is narrower. T: std::int32_t (integer types only), float, double.
template <class T>
std::vector<T> decode(const IdxArray& array);

}  // namespace annulet::data
