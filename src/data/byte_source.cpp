#include "annulet/data/byte_source.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <system_error>
#include <vector>

#include "annulet/base/error.hpp"

namespace annulet::data {
namespace {

namespace fs = std::filesystem;

Bytes size_of(const fs::path& file) {
  std::error_code error;
  const fs::file_status status = fs::status(file, error);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    throw InputError({fmt::format("cannot read '{}': it is not a regular file", file.string()), "", "Name a file"});
  }
  const std::uintmax_t size = fs::file_size(file, error);
  if (error) {
    throw InputError({fmt::format("cannot read '{}': {}", file.string(), error.message()), "", "Check the path"});
  }
  return Bytes(static_cast<std::int64_t>(size));
}

std::size_t read_some(std::ifstream& stream, std::span<std::uint8_t> into) {
  stream.read(reinterpret_cast<char*>(into.data()), static_cast<std::streamsize>(into.size()));
  return static_cast<std::size_t>(stream.gcount());
}

bool starts_like_gzip(std::ifstream& stream) {
  std::array<std::uint8_t, 2> first{};
  const bool gzip = read_some(stream, first) == 2 && first[0] == 0x1f && first[1] == 0x8b;
  stream.clear();
  stream.seekg(0);
  return gzip;
}

}  // namespace

class ByteSource::Inflater {
 public:
  Inflater(std::ifstream& stream, const fs::path& file) : stream_(stream), file_(file) {
    if (inflateInit2(&state_, MAX_WBITS + 16) != Z_OK) throw RunError({"zlib cannot start", "out of memory", ""});
  }
  ~Inflater() { inflateEnd(&state_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  std::size_t read(std::span<std::uint8_t> into) {
    std::size_t done = 0;
    while (done < into.size() && member_continues()) done += inflate_some(into.subspan(done));
    return done;
  }

 private:
  // False after the last member.
  bool member_continues() {
    if (state_.avail_in == 0) refill();
    if (!between_members_) return true;
    if (state_.avail_in == 0) return false;
    inflateReset(&state_);
    between_members_ = false;
    return true;
  }

  void refill() {
    state_.next_in = input_.data();
    state_.avail_in = static_cast<uInt>(read_some(stream_, input_));
    consumed_ += state_.avail_in;
  }

  std::size_t inflate_some(std::span<std::uint8_t> into) {
    const auto wanted = static_cast<uInt>(std::min<std::size_t>(into.size(), std::numeric_limits<uInt>::max()));
    state_.next_out = into.data();
    state_.avail_out = wanted;
    const int code = ::inflate(&state_, Z_NO_FLUSH);
    between_members_ = code == Z_STREAM_END;
    if (code == Z_BUF_ERROR) fail("the file ends inside the gzip stream");
    if (code != Z_OK && code != Z_STREAM_END) fail(state_.msg ? state_.msg : "zlib cannot go on");
    return wanted - state_.avail_out;
  }

  [[noreturn]] void fail(std::string_view what) const {
    throw InputError({fmt::format("'{}' is not whole gzip: {}, at byte {} of the file", file_.string(), what,
                                  consumed_ - state_.avail_in),
                      "none of its data is used", "Download or compress it again"});
  }

  std::ifstream& stream_;
  fs::path file_;
  z_stream state_{};
  std::vector<std::uint8_t> input_ = std::vector<std::uint8_t>(1 << 16);
  std::uint64_t consumed_ = 0;
  bool between_members_ = true;
};

ByteSource::ByteSource(const fs::path& file) : size_(size_of(file)) {
  stream_.open(file, std::ios::binary);
  if (!stream_) {
    throw InputError({fmt::format("cannot read '{}': {}", file.string(), std::generic_category().message(errno)), "",
                      "Check its permissions"});
  }
  if (starts_like_gzip(stream_)) inflater_ = std::make_unique<Inflater>(stream_, file);
}

ByteSource::~ByteSource() = default;

std::size_t ByteSource::read(std::span<std::uint8_t> into) {
  const std::size_t count = inflater_ ? inflater_->read(into) : read_some(stream_, into);
  position_ += Bytes(static_cast<std::int64_t>(count));
  return count;
}

Bytes ByteSource::limit() const { return compressed() ? 1032 * size_ : size_; }

}  // namespace annulet::data
