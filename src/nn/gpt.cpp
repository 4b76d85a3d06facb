#include "annulet/nn/gpt.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "annulet/base/aligned.hpp"
#include "annulet/base/error.hpp"
#include "nn/block.hpp"
#include "nn/embedding.hpp"
#include "nn/loss.hpp"
#include "nn/thousands.hpp"

namespace annulet::nn {
namespace {

void check(const GptOptions& o, Elements capacity) {
  const auto refuse = [](std::string what, std::string why, std::string hint) {
    throw InputError({std::move(what), std::move(why), std::move(hint)});
  };
  const std::pair<const char*, Elements> sizes[] = {{"vocabulary", o.vocabulary}, {"context", o.context},
                                                    {"layers", o.layers},         {"heads", o.heads},
                                                    {"width", o.width},           {"capacity in sequences", capacity}};
  for (const auto& [name, size] : sizes) {
    if (size < 1) refuse(fmt::format("a gpt with a {} of {} cannot be built", name, size), "", "Choose 1 or more");
  }
  if (o.hidden < 0) refuse(fmt::format("an MLP of {} units cannot be built", o.hidden), "", "Choose 0 for 4 x width");
  if (o.width % o.heads != 0) {
    refuse(fmt::format("{} heads do not divide a width of {}", o.heads, o.width), "each head takes as many columns",
           "Choose a width that is a multiple of the heads");
  }
  if (!(o.dropout >= 0 && o.dropout < 1)) {
    refuse(fmt::format("dropout {} is out of range", o.dropout), "it is the share of activations that are set to 0",
           "Choose a value from 0 to below 1");
  }
  if (!(o.deviation > 0)) refuse(fmt::format("weights cannot start with deviation {}", o.deviation), "", "Try 0.02");
}

// Lets communication move, but no gradient is ever ready: for the part of a tied tensor's gradient that is not the
// last.
class NeverReady final : public Progress {
 public:
  explicit NeverReady(Progress& progress) : progress_(progress) {}
  void gradient_begins(std::size_t tensor) override { progress_.gradient_begins(tensor); }
  void pulse() override { progress_.pulse(); }

 private:
  Progress& progress_;
};

std::size_t index(Elements n) { return static_cast<std::size_t>(n); }

Initial normal(double deviation) { return {Initial::Kind::normal, deviation}; }

GptOptions resolved(GptOptions options) {
  if (options.hidden == 0) options.hidden = 4 * options.width;
  return options;
}

BlockOptions block_options(const GptOptions& o, Elements layer) {
  const double residual = o.scaled_residuals ? o.deviation / std::sqrt(2 * static_cast<double>(o.layers)) : o.deviation;
  return {fmt::format("h.{}", layer),
          {o.heads, o.width, o.context},
          o.hidden,
          o.bias,
          o.activation,
          o.dropout,
          o.seed,
          normal(o.deviation),
          normal(residual)};
}

template <class T>
class Gpt final : public Model<T> {
 public:
  Gpt(const GptOptions& options, Elements capacity);

  const Layout& layout() const override { return layout_; }
  std::string describe() const override;
  LossSums forward(const Batch<T>& batch, TensorValues<const T> weights, Mode mode, Progress& progress) override;
  void backward(const Batch<T>& batch, TensorValues<const T> weights, TensorValues<T> gradients, double scale,
                Accumulate accumulate, Progress& progress) override;
  std::span<const T> outputs() const override { return std::span(logits_).first(index(rows_ * options_.vocabulary)); }
  Flops flops(Elements samples) const override;
  Flops recomputation(Elements samples) const override;
  void reserve(Elements micro_shards) override {
    most_micro_shards_ = micro_shards;
    tree_.reserve(micro_shards, largest_sum());
  }
  Elements owned_elements() const override;

 private:
  void set_layout();

  // Numbers of layers, from the output: the final norm and an untied head are 0.
  std::size_t layer_of_block(Elements l) const { return index(options_.layers - l); }
  std::size_t layer_of_positions() const { return index(options_.layers + 1); }
  std::size_t layer_of_tokens() const { return layer_of_positions() + (options_.tied ? 1 : 0); }

  Elements checked_time(const Batch<T>& batch, TensorValues<const T> weights) const;
  Matrix<T> input(Elements block) { return {inputs_[index(block)].data(), rows_, options_.width}; }
  Matrix<T> rows(AlignedVector<T>& values, Elements columns) const { return {values.data(), rows_, columns}; }
  void embed(const Pass<T>& pass, std::span<const std::int32_t> tokens);
  void embedding_backward(const Pass<T>& pass, std::span<const std::int32_t> tokens);
  void head_backward(const Pass<T>& pass);
  // A tied tensor's gradient is whole for each micro-shard before the tree adds it up.
  bool adds_head_to_embedding(const Pass<T>& pass) const { return options_.tied && !pass.micro_shards.empty(); }
  // Over rows, of a bias's, a norm's or a table's gradient.
  Elements largest_sum() const {
    const GptOptions& o = options_;
    return std::max({o.context * o.width, o.vocabulary * o.width, o.vocabulary, o.hidden, 3 * o.width});
  }
  double block_products(Elements samples) const;
  double attention_products(Elements samples) const;

  GptOptions options_;
  Elements capacity_, most_rows_;
  Layout layout_;
  Embedding<T> embedding_;
  AlignedVector<T> mask_;                // of the embedding's dropout
  std::unique_ptr<Dropout<T>> dropout_;  // null without dropout
  BlockScratch<T> scratch_;
  std::vector<BlockMemory<T>> memories_;  // one per block, or one
  std::vector<Block<T>> blocks_;
  LayerNorm<T> norm_;
  Linear<T> head_;
  std::unique_ptr<LossFunction<T>> loss_;
  std::vector<AlignedVector<T>> inputs_;  // [block]: x_l; the last one is the final norm's
  AlignedVector<T> normed_, logits_, d_logits_, d_x_;
  Elements most_micro_shards_ = 0;
  TreeScratch<T> tree_;           // their sums
  Elements rows_ = 0, time_ = 1;  // of the last forward pass
  Mode mode_ = Mode::train;
};

template <class T>
Gpt<T>::Gpt(const GptOptions& options, Elements capacity)
    : options_(resolved(options)),
      capacity_(capacity),
      most_rows_(capacity * options.context),
      embedding_({options.vocabulary, options.context, options.width, normal(options.deviation), options.tied}),
      mask_(index(options.dropout > 0 ? most_rows_ * options.width : 0)),
      scratch_(block_options(options_, 0), most_rows_),
      norm_("ln_f", options.width, most_rows_),
      head_({options.tied ? "wte" : "lm_head", options.width, options.vocabulary, false, normal(options.deviation)}),
      loss_(make_loss<T>(Loss::cross_entropy, options.vocabulary, most_rows_)) {
  const Elements n = most_rows_, width = options_.width;
  if (options_.dropout > 0) {
    dropout_ = std::make_unique<Dropout<T>>(DropoutOptions{"wte", options_.dropout, options_.seed}, width, mask_);
  }
  const Elements memories = options_.recompute ? 1 : options_.layers;
  for (Elements m = 0; m < memories; ++m) memories_.emplace_back(block_options(options_, m), n);
  blocks_.reserve(index(options_.layers));
  for (Elements l = 0; l < options_.layers; ++l) {
    blocks_.emplace_back(block_options(options_, l), n, memories_[index(l % memories)], scratch_);
  }
  for (Elements l = 0; l <= options_.layers; ++l) inputs_.emplace_back(index(n * width));
  normed_.resize(index(n * width)), d_x_.resize(index(n * width));
  logits_.resize(index(n * options_.vocabulary)), d_logits_.resize(logits_.size());
  set_layout();
}

template <class T>
void Gpt<T>::set_layout() {
  std::vector<Tensor> tensors;
  const auto append = [&](std::vector<Tensor> more, std::size_t layer) {
    for (Tensor& tensor : more) tensor.layer = layer, tensors.push_back(std::move(tensor));
  };
  if (!options_.tied) append(head_.tensors(), 0);
  append(norm_.tensors(), 0);
  for (Elements l = options_.layers; l-- > 0;) append(blocks_[index(l)].tensors(), layer_of_block(l));
  append(embedding_.tensors(), layer_of_positions());
  tensors.back().layer = layer_of_tokens(), tensors.back().tied = options_.tied;
  layout_ = Layout(std::move(tensors));
  embedding_.bind(layout_), norm_.bind(layout_), head_.bind(layout_);
  for (Block<T>& block : blocks_) block.bind(layout_);
}

template <class T>
std::string Gpt<T>::describe() const {
  const GptOptions& o = options_;
  return fmt::format("gpt {} layers, {} heads, width {}, context {}, vocabulary {}{}{}, {} parameters", o.layers,
                     o.heads, o.width, o.context, o.vocabulary,
                     o.dropout > 0 ? fmt::format(", dropout {}", o.dropout) : "", o.recompute ? ", recomputing" : "",
                     with_thousands(layout_.size()));
}

template <class T>
Elements Gpt<T>::checked_time(const Batch<T>& batch, TensorValues<const T> weights) const {
  ANNULET_EXPECTS(batch.samples >= 0 && batch.samples <= capacity_, "a batch fits the capacity of the model");
  ANNULET_EXPECTS(weights.hold(layout_), "weights are of all tensors");
  require_whole_micro_shards(batch);
  if (batch.samples == 0) return 1;
  const Elements tokens = std::ssize(batch.tokens), time = tokens / batch.samples;
  ANNULET_EXPECTS(tokens == batch.samples * time && time >= 1 && time <= options_.context,
                  "tokens are [B, T], T from 1 to the context");
  return time;
}

template <class T>
LossSums Gpt<T>::forward(const Batch<T>& batch, TensorValues<const T> weights, Mode mode, Progress& progress) {
  time_ = checked_time(batch, weights);
  rows_ = batch.samples * time_;
  mode_ = mode;
  const Pass<T> pass{.progress = progress,
                     .weights = weights,
                     .mode = mode,
                     .first_draw = batch.first_draw,
                     .time = time_,
                     .micro_shards = batch.micro_shards};
  embed(pass, batch.tokens);
  for (Elements l = 0; l < options_.layers; ++l) {
    progress.weights_needed(layer_of_block(l));
    blocks_[index(l)].forward(pass, input(l), input(l + 1));
    progress.weights_done(layer_of_block(l));
    progress.pulse();
  }
  progress.weights_needed(0);
  norm_.forward(pass, input(options_.layers), rows(normed_, options_.width));
  head_.forward(pass, rows(normed_, options_.width), rows(logits_, options_.vocabulary));
  progress.weights_done(0);
  if (options_.tied) progress.weights_done(layer_of_tokens());
  progress.pulse();
  if (batch.labels.empty()) {
    std::ranges::fill(batch.losses, 0.0);
    return {};
  }
  return loss_->forward({batch.labels, {}}, rows(logits_, options_.vocabulary), {batch.micro_shards, time_},
                        batch.losses);
}

template <class T>
void Gpt<T>::embed(const Pass<T>& pass, std::span<const std::int32_t> tokens) {
  pass.progress.weights_needed(layer_of_tokens());
  if (options_.tied) pass.progress.weights_needed(layer_of_positions());
  const Matrix<T> embedded = dropout_ ? rows(d_x_, options_.width) : input(0);  // d_x_ is free during a forward pass
  embedding_.forward(pass, tokens, embedded);
  if (dropout_) dropout_->forward(pass, embedded, input(0));
  pass.progress.weights_done(layer_of_positions());
}

template <class T>
void Gpt<T>::backward(const Batch<T>& batch, TensorValues<const T> weights, TensorValues<T> gradients, double scale,
                      Accumulate accumulate, Progress& progress) {
  ANNULET_EXPECTS(checked_time(batch, weights) == time_ && batch.samples * time_ == rows_,
                  "backward follows the forward pass of the same batch");
  ANNULET_EXPECTS(gradients.hold(layout_), "gradients are of all tensors");
  const Pass<T> pass{.progress = progress,
                     .weights = weights,
                     .gradients = gradients,
                     .accumulate = accumulate,
                     .mode = mode_,
                     .first_draw = batch.first_draw,
                     .time = time_,
                     .micro_shards = batch.micro_shards,
                     .tree = &tree_};
  loss_->backward({batch.labels, {}}, rows(logits_, options_.vocabulary), scale, rows(d_logits_, options_.vocabulary));
  if (options_.tied) progress.weights_needed(layer_of_tokens());
  progress.weights_needed(0);
  head_backward(pass);
  progress.weights_done(0);
  if (options_.tied) progress.weights_done(layer_of_tokens());
  for (Elements l = options_.layers; l-- > 0;) {
    progress.weights_needed(layer_of_block(l));
    if (options_.recompute) blocks_[index(l)].recompute(pass, input(l));
    blocks_[index(l)].backward(pass, input(l), rows(d_x_, options_.width));
    progress.weights_done(layer_of_block(l));
    progress.pulse();
  }
  progress.weights_needed(layer_of_positions());
  embedding_backward(pass, batch.tokens);
  progress.weights_done(layer_of_positions());
}

// Leaves the gradient of the last block's output in d_x_.
template <class T>
void Gpt<T>::head_backward(const Pass<T>& pass) {
  const Elements width = options_.width;
  NeverReady not_yet(pass.progress);
  const Pass<T> head_pass{.progress = options_.tied ? static_cast<Progress&>(not_yet) : pass.progress,
                          .weights = pass.weights,
                          .gradients = pass.gradients,
                          .accumulate = pass.accumulate,
                          .time = time_,
                          .micro_shards = pass.micro_shards,
                          .tree = pass.tree};
  const Matrix<T> d_normed = rows(scratch_.d_normed, width), d_logits = rows(d_logits_, options_.vocabulary);
  if (adds_head_to_embedding(pass)) {
    head_.input_gradient(head_pass, d_logits, d_normed);
  } else {
    head_.backward(head_pass, rows(normed_, width), {}, d_logits, d_normed);
  }
  norm_.backward(pass, input(options_.layers), rows(normed_, width), d_normed, rows(d_x_, width));
}

template <class T>
void Gpt<T>::embedding_backward(const Pass<T>& pass, std::span<const std::int32_t> tokens) {
  Matrix<T> d = rows(d_x_, options_.width);
  if (dropout_) {
    const Matrix<T> dropped = rows(scratch_.d_normed, options_.width);
    dropout_->backward(pass, {}, {}, d, dropped);
    d = dropped;
  }
  SharedHead<T> head;
  if (adds_head_to_embedding(pass)) head = {rows(d_logits_, options_.vocabulary), rows(normed_, options_.width)};
  embedding_.backward(pass, tokens, d, head);
}

// Multiply-adds of a forward pass: of the blocks' Linears, and of the attention, whose products are counted whole, as
// PaLM's formula does, though only the causal half is computed.
template <class T>
double Gpt<T>::block_products(Elements samples) const {
  const Elements per_token = options_.layers * (4 * options_.width + 2 * options_.hidden) * options_.width;
  return static_cast<double>(samples * options_.context) * static_cast<double>(per_token);
}

template <class T>
double Gpt<T>::attention_products(Elements samples) const {
  return static_cast<double>(samples * options_.context) *
         static_cast<double>(options_.layers * 2 * options_.width * options_.context);
}

template <class T>
Flops Gpt<T>::flops(Elements samples) const {
  const double head = static_cast<double>(samples * options_.context * options_.width * options_.vocabulary);
  return Flops(2 * 3 * (block_products(samples) + attention_products(samples) + head));
}

// All of a block but its last Linear.
template <class T>
Flops Gpt<T>::recomputation(Elements samples) const {
  if (!options_.recompute) return Flops(0);
  const double last = static_cast<double>(samples * options_.context * options_.layers * options_.hidden) *
                      static_cast<double>(options_.width);
  return Flops(2 * (block_products(samples) + attention_products(samples) - last));
}

// For N rows: the blocks' memories and scratch (block.hpp), two moments of each LayerNorm and two numbers of each
// head's softmax, the blocks' inputs and the final norm's, normed, and a gradient as wide; logits, their gradients and
// probabilities. For micro-shards, the tree's sums.
template <class T>
Elements Gpt<T>::owned_elements() const {
  const GptOptions& o = options_;
  const Elements masks = o.dropout > 0 ? 1 : 0;
  const Elements memory = (7 + 2 * masks) * o.width + 2 * o.hidden, scratch = (7 + masks) * o.width + o.hidden;
  const Elements statistics = 2 * (2 * o.layers + 1) + 2 * o.layers * o.heads;
  const Elements memories = o.recompute ? 1 : o.layers;
  const Elements row = memories * memory + scratch + statistics + (o.layers + 3 + masks) * o.width + 3 * o.vocabulary;
  return most_rows_ * row + AttentionScratch<T>::elements(block_options(o, 0).attention) +
         TreeScratch<T>::elements(most_micro_shards_, largest_sum());
}

}  // namespace

template <class T>
std::unique_ptr<Model<T>> make_gpt(const GptOptions& options, Elements capacity) {
  check(options, capacity);
  return std::make_unique<Gpt<T>>(options, capacity);
}

template std::unique_ptr<Model<float>> make_gpt<float>(const GptOptions&, Elements);
template std::unique_ptr<Model<double>> make_gpt<double>(const GptOptions&, Elements);

}  // namespace annulet::nn
