#pragma once
// Text for a language model that reads bytes: the vocabulary is the bytes that occur, and a sample is a window of
// `context` tokens whose labels are the tokens that follow.
//   training    window i starts at a uniform position that depends on (seed, i) alone
//   evaluation  the whole text in consecutive windows, so that every token but the first is foretold once; the last
//               window is filled up with tokens that have no label
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "annulet/base/random.hpp"
#include "annulet/data/source.hpp"

namespace annulet::data {

class Vocabulary {
 public:
  // The bytes that occur, in ascending order.
  static Vocabulary of(std::span<const std::uint8_t> text);

  // As written by to_text: "10 32 33", one number per token. Throws InputError.
  static Vocabulary parse(const std::string& text);
  std::string to_text() const;

  Elements size() const { return std::ssize(bytes_); }
  std::uint8_t byte(Elements token) const { return bytes_.at(static_cast<std::size_t>(token)); }

  // Throws InputError naming the byte, its place and `origin` where a byte is not in the vocabulary.
  std::vector<std::uint16_t> encode(std::span<const std::uint8_t> text, const std::string& origin) const;

 private:
  explicit Vocabulary(std::vector<std::uint8_t> bytes);

  std::vector<std::uint8_t> bytes_;   // [token]
  std::vector<std::int32_t> tokens_;  // [byte]: -1 where it does not occur
};

class Windows final : public Source {
 public:
  enum class Order { random, consecutive };
  struct Options {
    Elements context = 64;
    Order order = Order::random;
    Elements classes = 256;  // of the tokens
    std::uint64_t seed = 1;  // random
  };

  // Throws InputError, naming `origin`, for a text too short for one window (random) or for one token and the next.
  Windows(std::vector<std::uint16_t> tokens, const Options& options, const std::string& origin);

  Elements samples() const override;  // random: as many as the text has whole windows
  SampleShape shape() const override;
  Elements targets() const override;
  bool random() const override { return options_.order == Order::random; }
  void gather(std::span<const Elements> indices, const Rows<float>& rows) const override;
  void gather(std::span<const Elements> indices, const Rows<double>& rows) const override;
  std::uint64_t fingerprint() const override;

  // Where window `index` begins.
  Elements start(Elements index) const;

 private:
  template <class T>
  void gather_windows(std::span<const Elements> indices, const Rows<T>& rows) const;

  std::vector<std::uint16_t> tokens_;
  Options options_;
  RandomStream stream_;
};

struct TextOptions {
  std::filesystem::path file;  // plain or gzip
  double validation = 0.1;     // share at the end that is kept for evaluation, in [0, 1); 0: none
  Elements context = 64;
  std::uint64_t seed = 1;
  std::optional<Vocabulary> vocabulary{};  // instead of the bytes that occur
};

struct Text {
  Vocabulary vocabulary;
  Windows train;
  std::optional<Windows> validation;
};

// Throws InputError with the file's name.
Text load_text(const TextOptions& options);

// Tokens drawn uniformly from [0, classes): for measuring. Throws InputError.
Windows make_synthetic_text(Elements length, const Windows::Options& options);

}  // namespace annulet::data
