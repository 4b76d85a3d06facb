#include "annulet/data/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>

#include "annulet/base/error.hpp"
#include "annulet/data/byte_source.hpp"

namespace annulet::data {
namespace {

constexpr Elements kBytes = 256;

std::size_t index(Elements i) { return static_cast<std::size_t>(i); }

// The whole of a file, as it comes; memory follows what there is, not what a header claims.
std::vector<std::uint8_t> read_all(const std::filesystem::path& file) {
  ByteSource source(file);
  std::vector<std::uint8_t> bytes;
  std::array<std::uint8_t, 1 << 16> block;
  for (std::size_t count = block.size(); count == block.size();) {
    count = source.read(block);
    bytes.insert(bytes.end(), block.begin(), block.begin() + static_cast<std::ptrdiff_t>(count));
  }
  return bytes;
}

std::string shown(std::uint8_t byte) {
  return byte > 32 && byte < 127 ? fmt::format("'{}'", static_cast<char>(byte)) : fmt::format("byte {}", byte);
}

}  // namespace

Vocabulary::Vocabulary(std::vector<std::uint8_t> bytes) : bytes_(std::move(bytes)), tokens_(kBytes, -1) {
  for (std::size_t t = 0; t < bytes_.size(); ++t) tokens_[bytes_[t]] = static_cast<std::int32_t>(t);
}

Vocabulary Vocabulary::of(std::span<const std::uint8_t> text) {
  std::array<bool, kBytes> occurs{};
  for (const std::uint8_t byte : text) occurs[byte] = true;
  std::vector<std::uint8_t> bytes;
  for (std::size_t byte = 0; byte < occurs.size(); ++byte) {
    if (occurs[byte]) bytes.push_back(static_cast<std::uint8_t>(byte));
  }
  return Vocabulary(std::move(bytes));
}

Vocabulary Vocabulary::parse(const std::string& text) {
  std::vector<std::uint8_t> bytes;
  std::istringstream numbers(text);
  for (int byte = 0; numbers >> byte;) bytes.push_back(static_cast<std::uint8_t>(byte));
  Vocabulary vocabulary = of(bytes);
  if (bytes.empty() || vocabulary.to_text() != text) {
    throw InputError({fmt::format("'{}' is not a vocabulary", text), "it is a list of ascending bytes, as '10 32 33'"});
  }
  return vocabulary;
}

std::string Vocabulary::to_text() const { return fmt::format("{}", fmt::join(bytes_, " ")); }

std::vector<std::uint16_t> Vocabulary::encode(std::span<const std::uint8_t> text, const std::string& origin) const {
  std::vector<std::uint16_t> tokens;
  tokens.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::int32_t token = tokens_[text[i]];
    if (token < 0) {
      throw InputError({fmt::format("{}: {} at place {} is not in the vocabulary", origin, shown(text[i]), i),
                        "the model has seen no such byte", "Use text of the kind that it was trained on"});
    }
    tokens.push_back(static_cast<std::uint16_t>(token));
  }
  return tokens;
}

Windows::Windows(std::vector<std::uint16_t> tokens, const Options& options, const std::string& origin)
    : tokens_(std::move(tokens)), options_(options), stream_(options.seed, "text.windows") {
  if (options.context < 1) {
    throw InputError({fmt::format("a context of {} tokens holds no text", options.context), "", "Choose 1 or more"});
  }
  const Elements least = options.order == Order::random ? options.context + 1 : 2;
  if (std::ssize(tokens_) >= least) return;
  const bool random = options.order == Order::random;
  throw InputError(
      {fmt::format("{} has {} tokens, at least {} are needed", origin, tokens_.size(), least),
       random ? "a window of the context, and the token that follows" : "a token, and the one that follows",
       random ? "Give more text, or a smaller context" : "Keep a larger part of the text for evaluation"});
}

// A window needs the token after its last one as a label.
Elements Windows::samples() const {
  const Elements labelled = std::ssize(tokens_) - 1;
  return random() ? labelled / options_.context : (labelled + options_.context - 1) / options_.context;
}

SampleShape Windows::shape() const {
  return {.tokens = options_.context, .labels = options_.context, .classes = options_.classes};
}

Elements Windows::targets() const { return random() ? samples() * options_.context : std::ssize(tokens_) - 1; }

Elements Windows::start(Elements i) const {
  if (!random()) return i * options_.context;
  const auto starts = static_cast<std::uint64_t>(std::ssize(tokens_) - options_.context);
  return static_cast<Elements>(stream_.below(static_cast<std::uint64_t>(i), starts));
}

template <class T>
void Windows::gather_windows(std::span<const Elements> indices, const Rows<T>& rows) const {
  const Elements context = options_.context;
  const auto wanted = indices.size() * index(context);
  ANNULET_EXPECTS(rows.tokens.size() == wanted && rows.labels.size() == wanted, "tokens and labels are [n, context]");
  auto token = rows.tokens.begin();
  auto label = rows.labels.begin();
  for (const Elements i : indices) {
    const Elements first = start(i), labelled = std::min(context, std::ssize(tokens_) - 1 - first);
    ANNULET_EXPECTS(i >= 0 && labelled > 0, "an index names a window");
    const auto text = tokens_.begin() + first;
    std::fill(std::copy_n(text, labelled, token), token + context, 0);
    std::fill(std::copy_n(text + 1, labelled, label), label + context, kNoLabel);
    token += context, label += context;
  }
}

void Windows::gather(std::span<const Elements> indices, const Rows<float>& rows) const {
  gather_windows(indices, rows);
}

void Windows::gather(std::span<const Elements> indices, const Rows<double>& rows) const {
  gather_windows(indices, rows);
}

std::uint64_t Windows::fingerprint() const {
  const std::string_view text(reinterpret_cast<const char*>(tokens_.data()), tokens_.size() * sizeof(tokens_[0]));
  return stable_hash(text, stable_hash(fmt::format("{} {}", options_.context, options_.classes)));
}

Text load_text(const TextOptions& options) {
  if (!(options.validation >= 0 && options.validation < 1)) {
    throw InputError({fmt::format("a validation part of {} cannot be split off", options.validation),
                      "it is a share of the text, from its end", "Choose a value from 0 to below 1"});
  }
  const std::vector<std::uint8_t> bytes = read_all(options.file);
  const std::string name = options.file.string();
  const Vocabulary vocabulary = options.vocabulary ? *options.vocabulary : Vocabulary::of(bytes);
  std::vector<std::uint16_t> tokens = vocabulary.encode(bytes, name);
  const auto kept =
      static_cast<std::ptrdiff_t>(std::ceil((1 - options.validation) * static_cast<double>(tokens.size())));
  std::vector<std::uint16_t> rest(tokens.begin() + kept, tokens.end());
  tokens.resize(static_cast<std::size_t>(kept));
  const Elements classes = vocabulary.size();
  Text text{vocabulary,
            Windows(std::move(tokens), {options.context, Windows::Order::random, classes, options.seed},
                    fmt::format("the training part of {}", name)),
            std::nullopt};
  if (options.validation > 0) {
    text.validation.emplace(std::move(rest), Windows::Options{options.context, Windows::Order::consecutive, classes},
                            fmt::format("the validation part of {}", name));
  }
  return text;
}

Windows make_synthetic_text(Elements length, const Windows::Options& options) {
  constexpr Elements kMost = 1 << 16;
  if (options.classes < 1 || options.classes > kMost) {
    throw InputError({fmt::format("a vocabulary of {} is out of range for synthetic text", options.classes),
                      "1 to 65536", "Set model.vocabulary"});
  }
  const RandomStream stream(options.seed, "synthetic.tokens");
  std::vector<std::uint16_t> tokens(static_cast<std::size_t>(std::max<Elements>(length, 0)));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<std::uint16_t>(stream.below(i, static_cast<std::uint64_t>(options.classes)));
  }
  return Windows(std::move(tokens), options, "the synthetic text");
}

}  // namespace annulet::data
