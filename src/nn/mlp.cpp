#include "annulet/nn/mlp.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include "annulet/base/aligned.hpp"
#include "annulet/base/error.hpp"
#include "nn/activation.hpp"
#include "nn/dropout.hpp"
#include "nn/linear.hpp"
#include "nn/loss.hpp"
#include "nn/thousands.hpp"

namespace annulet::nn {
namespace {

void check(const MlpOptions& options, Elements capacity) {
  const auto& widths = options.widths;
  if (widths.size() < 2) {
    throw InputError({fmt::format("an mlp of {} widths has no layer", widths.size()),
                      "it needs the number of inputs and of outputs", "Write the widths as 784-256-10"});
  }
  if (const auto bad = std::ranges::find_if(widths, [](Elements w) { return w < 1; }); bad != widths.end()) {
    throw InputError({fmt::format("the width {} of layer {} of the mlp is not positive", *bad, bad - widths.begin()),
                      "a layer has at least one unit", "Write the widths as 784-256-10"});
  }
  if (!(options.dropout >= 0 && options.dropout < 1)) {
    throw InputError({fmt::format("dropout {} is out of range", options.dropout),
                      "it is the share of activations that are set to 0", "Choose a value from 0 to below 1"});
  }
  if (capacity < 1) {
    throw InputError({fmt::format("a capacity of {} samples is too small for a model", capacity),
                      "it holds the activations of a batch", "Choose a batch of 1 or more"});
  }
}

std::size_t index(Elements i) { return static_cast<std::size_t>(i); }

template <class T>
class Mlp final : public Model<T> {
 public:
  Mlp(const MlpOptions& options, Elements capacity);

  const Layout& layout() const override { return layout_; }
  std::string describe() const override;
  LossSums forward(const Batch<T>& batch, TensorValues<const T> weights, Mode mode, Progress& progress) override;
  void backward(const Batch<T>& batch, TensorValues<const T> weights, TensorValues<T> gradients, double scale,
                Accumulate accumulate, Progress& progress) override;
  std::span<const T> outputs() const override { return values(layers_.size(), samples_).elements(); }
  Flops flops(Elements samples) const override;
  void reserve(Elements micro_shards) override {
    most_micro_shards_ = micro_shards;
    tree_.reserve(micro_shards, largest_sum());
  }
  Elements owned_elements() const override;

 private:
  void add_layers();
  void set_layout();
  void check(const Batch<T>& batch, TensorValues<const T> weights) const;

  // h_k [B, width]: the input of layer k, the output of layer k - 1; the features for k = 0 come with the batch.
  Matrix<T> values(std::size_t k, Elements samples) const;
  Matrix<const T> input(std::size_t k, const Batch<T>& batch) const;
  Matrix<T> gradient(std::size_t k, Elements samples);

  Elements largest_sum() const { return *std::max_element(options_.widths.begin() + 1, options_.widths.end()); }

  MlpOptions options_;
  Elements capacity_;
  Layout layout_;
  std::vector<std::unique_ptr<Layer<T>>> layers_;
  std::vector<std::optional<std::size_t>> numbers_;  // [k] of layers with tensors, from the output
  std::unique_ptr<LossFunction<T>> loss_;
  mutable std::vector<AlignedVector<T>> values_;  // [k - 1]: h_k, [capacity, width]
  std::vector<AlignedVector<T>> masks_;           // of the Dropouts
  std::array<AlignedVector<T>, 2> gradients_;     // of h_k, in turns
  Elements most_micro_shards_ = 0;
  TreeScratch<T> tree_;   // their sums
  Elements samples_ = 0;  // of the last forward pass
};

template <class T>
Mlp<T>::Mlp(const MlpOptions& options, Elements capacity)
    : options_(options), capacity_(capacity), loss_(make_loss<T>(options.loss, options.widths.back(), capacity)) {
  add_layers();
  set_layout();
  for (const auto& layer : layers_) values_.emplace_back(index(capacity * layer->outputs()));
  const auto& widths = options.widths;
  const Elements widest = *std::max_element(widths.begin() + 1, widths.end());
  for (auto& buffer : gradients_) buffer.resize(index(capacity * widest));
}

template <class T>
void Mlp<T>::add_layers() {
  const auto& widths = options_.widths;
  for (std::size_t k = 0; k + 1 < widths.size(); ++k) {
    const std::string name = fmt::format("layers.{}", k);
    const Elements units = widths[k + 1];
    layers_.push_back(std::make_unique<Linear<T>>(LinearOptions{name, widths[k], units}));
    if (k + 2 == widths.size()) break;
    layers_.push_back(std::make_unique<ActivationLayer<T>>(options_.activation, units));
    if (options_.dropout == 0) continue;
    masks_.emplace_back(index(capacity_ * units));
    layers_.push_back(
        std::make_unique<Dropout<T>>(DropoutOptions{name, options_.dropout, options_.seed}, units, masks_.back()));
  }
}

template <class T>
void Mlp<T>::set_layout() {
  std::vector<Tensor> tensors;
  numbers_.resize(layers_.size());
  for (std::size_t k = layers_.size(), number = 0; k-- > 0;) {
    std::vector<Tensor> own = layers_[k]->tensors();
    if (own.empty()) continue;
    for (Tensor& tensor : own) tensor.layer = number, tensors.push_back(std::move(tensor));
    numbers_[k] = number++;
  }
  layout_ = Layout(std::move(tensors));
  for (const auto& layer : layers_) layer->bind(layout_);
}

template <class T>
std::string Mlp<T>::describe() const {
  const std::string dropout = options_.dropout > 0 ? fmt::format(" dropout {}", options_.dropout) : "";
  return fmt::format("mlp {} {}{}, {} parameters", fmt::join(options_.widths, "-"), to_text(options_.activation),
                     dropout, with_thousands(layout_.size()));
}

template <class T>
void Mlp<T>::check(const Batch<T>& batch, TensorValues<const T> weights) const {
  ANNULET_EXPECTS(batch.samples >= 0 && batch.samples <= capacity_, "a batch fits the capacity of the model");
  ANNULET_EXPECTS(batch.features.size() == index(batch.samples * options_.widths.front()), "features are [B, inputs]");
  ANNULET_EXPECTS(weights.hold(layout_), "weights are of all tensors");
  require_whole_micro_shards(batch);
}

template <class T>
Matrix<T> Mlp<T>::values(std::size_t k, Elements samples) const {
  return {values_[k - 1].data(), samples, layers_[k - 1]->outputs()};
}

template <class T>
Matrix<const T> Mlp<T>::input(std::size_t k, const Batch<T>& batch) const {
  if (k == 0) return {batch.features.data(), batch.samples, options_.widths.front()};
  return values(k, batch.samples);
}

template <class T>
Matrix<T> Mlp<T>::gradient(std::size_t k, Elements samples) {
  if (k == 0) return {};  // nobody asks for the gradient of the features
  return {gradients_[k % 2].data(), samples, layers_[k - 1]->outputs()};
}

template <class T>
LossSums Mlp<T>::forward(const Batch<T>& batch, TensorValues<const T> weights, Mode mode, Progress& progress) {
  check(batch, weights);
  samples_ = batch.samples;
  const Pass<T> pass{.progress = progress,
                     .weights = weights,
                     .mode = mode,
                     .first_draw = batch.first_draw,
                     .micro_shards = batch.micro_shards};
  for (std::size_t k = 0; k < layers_.size(); ++k) {
    if (numbers_[k]) progress.weights_needed(*numbers_[k]);
    layers_[k]->forward(pass, input(k, batch), values(k + 1, batch.samples));
    if (numbers_[k]) progress.weights_done(*numbers_[k]);
    progress.pulse();
  }
  return loss_->forward({batch.labels, batch.values}, values(layers_.size(), batch.samples), {batch.micro_shards, 1},
                        batch.losses);
}

template <class T>
void Mlp<T>::backward(const Batch<T>& batch, TensorValues<const T> weights, TensorValues<T> gradients, double scale,
                      Accumulate accumulate, Progress& progress) {
  check(batch, weights);
  ANNULET_EXPECTS(batch.samples == samples_, "backward follows the forward pass of the same batch");
  ANNULET_EXPECTS(gradients.hold(layout_), "gradients are of all tensors");
  const Pass<T> pass{.progress = progress,
                     .weights = weights,
                     .gradients = gradients,
                     .accumulate = accumulate,
                     .micro_shards = batch.micro_shards,
                     .tree = &tree_};
  const Elements n = batch.samples;
  loss_->backward({batch.labels, batch.values}, values(layers_.size(), n), scale, gradient(layers_.size(), n));
  for (std::size_t k = layers_.size(); k-- > 0;) {
    if (numbers_[k]) progress.weights_needed(*numbers_[k]);
    layers_[k]->backward(pass, input(k, batch), values(k + 1, n), gradient(k + 1, n), gradient(k, n));
    if (numbers_[k]) progress.weights_done(*numbers_[k]);
    progress.pulse();
  }
}

// Forward one product per Linear; backward two, but for the first, whose input has no gradient.
template <class T>
Flops Mlp<T>::flops(Elements samples) const {
  const auto& widths = options_.widths;
  const auto first = static_cast<double>(widths[0] * widths[1]);
  const auto all =
      static_cast<double>(std::inner_product(widths.begin(), widths.end() - 1, widths.begin() + 1, Elements{0}));
  return Flops(2 * static_cast<double>(samples) * (3 * all - first));
}

// A sample's: two values of each hidden unit, or three and a mask with dropout; outputs, and the loss's probabilities;
// two gradients as wide as the widest layer. For micro-shards, the tree's sums.
template <class T>
Elements Mlp<T>::owned_elements() const {
  const auto& widths = options_.widths;
  const Elements outputs = widths.back(), widest = largest_sum();
  const Elements hidden = std::accumulate(widths.begin() + 1, widths.end() - 1, Elements{0});
  const Elements probabilities = options_.loss == Loss::cross_entropy ? outputs : 0;
  return capacity_ * ((options_.dropout > 0 ? 4 : 2) * hidden + outputs + probabilities + 2 * widest) +
         TreeScratch<T>::elements(most_micro_shards_, largest_sum());
}

}  // namespace

template <class T>
std::unique_ptr<Model<T>> make_mlp(const MlpOptions& options, Elements capacity) {
  check(options, capacity);
  return std::make_unique<Mlp<T>>(options, capacity);
}

template std::unique_ptr<Model<float>> make_mlp<float>(const MlpOptions&, Elements);
template std::unique_ptr<Model<double>> make_mlp<double>(const MlpOptions&, Elements);

}  // namespace annulet::nn
