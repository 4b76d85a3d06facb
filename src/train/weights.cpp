#include "annulet/train/weights.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "annulet/base/error.hpp"
#include "annulet/data/safetensors.hpp"

namespace annulet::train {
namespace {

constexpr const char* kVocabulary = "vocabulary";

template <class T>
std::span<T> part(std::span<T> values, const nn::Tensor& tensor) {
  return values.subspan(static_cast<std::size_t>(tensor.first), static_cast<std::size_t>(tensor.count));
}

std::string text(const std::vector<Elements>& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

}  // namespace

template <class T>
void save_weights(const std::filesystem::path& file, const nn::Layout& layout, std::span<const T> weights,
                  const std::optional<data::Vocabulary>& vocabulary) {
  std::vector<data::NamedTensor> tensors;
  for (const nn::Tensor& tensor : layout.tensors()) {
    tensors.push_back({tensor.name, data::kDtypeOf<T>, tensor.shape, std::as_bytes(part(weights, tensor))});
  }
  data::Metadata metadata{{"format", "pt"}};
  if (vocabulary) metadata[kVocabulary] = vocabulary->to_text();
  data::write_safetensors(file, tensors, metadata);
}

template <class T>
void load_weights(const std::filesystem::path& file, const nn::Layout& layout, std::span<T> weights) {
  load_weights<T>(file, layout, [&](const nn::Tensor& tensor, std::span<const T> values) {
    std::ranges::copy(values, part(weights, tensor).begin());
  });
}

template <class T>
void load_weights(const std::filesystem::path& file, const nn::Layout& layout, const TakeTensor<T>& take) {
  std::vector<T> values;
  const data::SafetensorsFile stored(file);
  for (const nn::Tensor& tensor : layout.tensors()) {
    const data::NamedTensor& found = stored.at(tensor.name);
    if (found.shape != tensor.shape) {
      throw InputError({fmt::format("{}: tensor '{}' has shape {}, the model wants {}", file.string(), tensor.name,
                                    text(found.shape), text(tensor.shape)),
                        "these are the weights of another model", "Use the configuration that they were trained with"});
    }
    values.resize(static_cast<std::size_t>(tensor.count));
    data::copy_values<T>(found, values);
    take(tensor, values);
  }
  if (stored.tensors().size() == layout.tensors().size()) return;
  for (const data::NamedTensor& found : stored.tensors()) {
    if (layout.find(found.name) != nullptr) continue;
    throw InputError({fmt::format("{}: tensor '{}' is none of the model's", file.string(), found.name),
                      "these are the weights of another model", "Use the configuration that they were trained with"});
  }
}

std::optional<data::Vocabulary> load_vocabulary(const std::filesystem::path& file) {
  const data::SafetensorsFile stored(file);
  const auto found = stored.metadata().find(kVocabulary);
  if (found == stored.metadata().end()) return std::nullopt;
  try {
    return data::Vocabulary::parse(found->second);
  } catch (const InputError& error) {
    std::string what = fmt::format("{}: {}", file.string(), error.what());
    what.pop_back();  // the message ends in a full stop of its own
    throw InputError({what});
  }
}

template void save_weights<float>(const std::filesystem::path&, const nn::Layout&, std::span<const float>,
                                  const std::optional<data::Vocabulary>&);
template void save_weights<double>(const std::filesystem::path&, const nn::Layout&, std::span<const double>,
                                   const std::optional<data::Vocabulary>&);
template void load_weights<float>(const std::filesystem::path&, const nn::Layout&, std::span<float>);
template void load_weights<double>(const std::filesystem::path&, const nn::Layout&, std::span<double>);
template void load_weights<float>(const std::filesystem::path&, const nn::Layout&, const TakeTensor<float>&);
template void load_weights<double>(const std::filesystem::path&, const nn::Layout&, const TakeTensor<double>&);

}  // namespace annulet::train
