#pragma once
// Reads a file from front to back and inflates it on the way if its content is gzip (first bytes 1f 8b, whatever its
// name; several members in a row are one stream). Inflates no more than is asked for.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>

#include "annulet/base/units.hpp"

namespace annulet::data {

class ByteSource {
 public:
  // Throws InputError if the file cannot be opened or is not a regular file.
  explicit ByteSource(const std::filesystem::path& file);
  ~ByteSource();
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  // Fills `into` and returns the bytes given: fewer than asked for only at the end. The checksum of a gzip member is
  // checked when a read reaches past its last byte. Throws InputError where the gzip stream is damaged or cut off.
  std::size_t read(std::span<std::uint8_t> into);

  bool compressed() const { return inflater_ != nullptr; }
  Bytes position() const { return position_; }  // bytes given so far, inflated
  Bytes size() const { return size_; }          // of the file as it lies on disk

  // No more bytes than this can come: the size of a plain file, 1032 times that of a gzip file (deflate's best).
  Bytes limit() const;

 private:
  class Inflater;

  std::ifstream stream_;
  Bytes size_, position_;
  std::unique_ptr<Inflater> inflater_;
};

}  // namespace annulet::data
