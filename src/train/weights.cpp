#include "annulet/train/weights.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "annulet/base/error.hpp"

namespace annulet::train {
namespace {

constexpr const char* kVocabulary = "vocabulary";

template <class T>
std::span<T> part(std::span<T> values, const nn::Tensor& tensor) {
  return values.subspan(static_cast<std::size_t>(tensor.first), static_cast<std::size_t>(tensor.count));
}

std::string text(const std::vector<Elements>& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

template <class T>
std::vector<data::NamedTensor> named(const nn::Layout& layout) {
  std::vector<data::NamedTensor> tensors;
  for (const nn::Tensor& tensor : layout.tensors())
    tensors.push_back({tensor.name, data::kDtypeOf<T>, tensor.shape, {}});
  return tensors;
}

data::Metadata metadata(const std::optional<data::Vocabulary>& vocabulary) {
  data::Metadata entries{{"format", "pt"}};
  if (vocabulary) entries[kVocabulary] = vocabulary->to_text();
  return entries;
}

}  // namespace

template <class T>
WeightsFile<T>::WeightsFile(const std::filesystem::path& file, const nn::Layout& layout,
                            const std::optional<data::Vocabulary>& vocabulary)
    : layout_(layout), writer_(file, named<T>(layout), metadata(vocabulary)) {}

template <class T>
void WeightsFile<T>::write(Elements first, std::span<const T> weights) {
  const Elements end = first + std::ssize(weights);
  for (std::size_t t = 0; t < layout_.tensors().size(); ++t) {
    const nn::Tensor& tensor = layout_.tensors()[t];
    const Elements from = std::max(first, tensor.first), to = std::min(end, tensor.first + tensor.count);
    if (from >= to) continue;
    const auto values = weights.subspan(static_cast<std::size_t>(from - first), static_cast<std::size_t>(to - from));
    writer_.write(t, Bytes(sizeof(T)) * (from - tensor.first), std::as_bytes(values));
  }
}

template <class T>
void WeightsFile<T>::commit() {
  writer_.commit();
}

template <class T>
void save_weights(const std::filesystem::path& file, const nn::Layout& layout, std::span<const T> weights,
                  const std::optional<data::Vocabulary>& vocabulary) {
  ANNULET_EXPECTS(std::ssize(weights) == layout.size(), "weights are the whole flat buffer");
  WeightsFile<T> out(file, layout, vocabulary);
  out.write(0, weights);
  out.commit();
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

template class WeightsFile<float>;
template class WeightsFile<double>;
template void save_weights<float>(const std::filesystem::path&, const nn::Layout&, std::span<const float>,
                                  const std::optional<data::Vocabulary>&);
template void save_weights<double>(const std::filesystem::path&, const nn::Layout&, std::span<const double>,
                                   const std::optional<data::Vocabulary>&);
template void load_weights<float>(const std::filesystem::path&, const nn::Layout&, std::span<float>);
template void load_weights<double>(const std::filesystem::path&, const nn::Layout&, std::span<double>);
template void load_weights<float>(const std::filesystem::path&, const nn::Layout&, const TakeTensor<float>&);
template void load_weights<double>(const std::filesystem::path&, const nn::Layout&, const TakeTensor<double>&);

}  // namespace annulet::train
