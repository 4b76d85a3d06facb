#pragma once
// Weights in safetensors files: PyTorch's names and layout (a Linear's weight is [out, in]), and a language model's
// vocabulary in the metadata; nothing in the file depends on ranks, time or driver, so that equal weights are equal
// files.
#include <filesystem>
#include <functional>
#include <optional>
#include <span>

#include "annulet/data/safetensors.hpp"
#include "annulet/data/text.hpp"
#include "annulet/nn/layout.hpp"

namespace annulet::train {

// A file of weights that come in pieces, in any order, so that nobody need hold all of them; it is there whole or not
// at all. Throws InputError or RunError.
template <class T>
class WeightsFile {
 public:
  // `layout` outlives it.
  WeightsFile(const std::filesystem::path& file, const nn::Layout& layout,
              const std::optional<data::Vocabulary>& vocabulary = std::nullopt);

  void write(Elements first, std::span<const T> weights);  // elements [first, first + weights.size()) of the layout
  void commit();                                           // after all weights

 private:
  const nn::Layout& layout_;
  data::SafetensorsWriter writer_;
};

// All at once.
template <class T>
void save_weights(const std::filesystem::path& file, const nn::Layout& layout, std::span<const T> weights,
                  const std::optional<data::Vocabulary>& vocabulary = std::nullopt);

// Throws InputError naming the file and the tensor unless it holds exactly the layout's tensors with their shapes.
template <class T>
void load_weights(const std::filesystem::path& file, const nn::Layout& layout, std::span<T> weights);

// The same, one tensor at a time to whoever takes it.
template <class T>
using TakeTensor = std::function<void(const nn::Tensor&, std::span<const T>)>;
template <class T>
void load_weights(const std::filesystem::path& file, const nn::Layout& layout, const TakeTensor<T>& take);

// The vocabulary that was saved with the weights, if one was. Throws InputError naming the file.
std::optional<data::Vocabulary> load_vocabulary(const std::filesystem::path& file);

}  // namespace annulet::train
