#pragma once
// Weights in safetensors files: PyTorch's names and layout (a Linear's weight is [out, in]); nothing in the file
// depends on ranks, time or driver, so that equal weights are equal files.
#include <filesystem>
#include <span>

#include "annulet/nn/layout.hpp"

namespace annulet::train {

// Atomic: the file is there whole or not at all. Throws InputError or RunError.
template <class T>
void save_weights(const std::filesystem::path& file, const nn::Layout& layout, std::span<const T> weights);

// Throws InputError naming the file and the tensor unless it holds exactly the layout's tensors with their shapes.
template <class T>
void load_weights(const std::filesystem::path& file, const nn::Layout& layout, std::span<T> weights);

}  // namespace annulet::train
