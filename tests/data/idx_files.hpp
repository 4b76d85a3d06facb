#pragma once
// Bytes of IDX and gzip files, whole and broken.
#include <zlib.h>

#include <bit>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace annulet::data::testing {

inline std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(value >> shift & 0xff);
  return bytes;
}

inline std::string idx_header(std::uint8_t type, std::initializer_list<std::uint32_t> shape) {
  std::string bytes{'\0', '\0', static_cast<char>(type), static_cast<char>(shape.size())};
  for (const std::uint32_t size : shape) bytes += big_endian(size);
  return bytes;
}

// The numbers 1, 2, 3, ... as bytes.
inline std::string counting(int count) {
  std::string bytes;
  for (int i = 1; i <= count; ++i) bytes += static_cast<char>(i);
  return bytes;
}

inline std::string floats(std::initializer_list<float> values) {
  std::string bytes;
  for (const float value : values) bytes += big_endian(std::bit_cast<std::uint32_t>(value));
  return bytes;
}

inline std::string labels(std::initializer_list<std::uint8_t> values) {
  std::string bytes = idx_header(0x08, {static_cast<std::uint32_t>(values.size())});
  for (const std::uint8_t value : values) bytes += static_cast<char>(value);
  return bytes;
}

// Three images of 2 x 2 pixels: 1, 2, ... 12.
inline std::string three_images() { return idx_header(0x08, {3, 2, 2}) + counting(12); }

inline std::string gzip(std::string_view content) {
  std::string in(content), out(content.size() + 1000, '\0');
  z_stream state{};
  deflateInit2(&state, 9, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY);
  state.next_in = reinterpret_cast<Bytef*>(in.data());
  state.avail_in = static_cast<uInt>(in.size());
  state.next_out = reinterpret_cast<Bytef*>(out.data());
  state.avail_out = static_cast<uInt>(out.size());
  deflate(&state, Z_FINISH);
  out.resize(state.total_out);
  deflateEnd(&state);
  return out;
}

}  // namespace annulet::data::testing
