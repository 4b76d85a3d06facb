#include "nn/block.hpp"

#include <array>

namespace annulet::nn {
namespace {

std::size_t index(Elements n) { return static_cast<std::size_t>(n); }

template <class T>
void add(Matrix<const T> a, Matrix<const T> b, Matrix<T> sum) {
  for (Elements i = 0; i < sum.size(); ++i) sum.data[i] = a.data[i] + b.data[i];
}

template <class T>
std::unique_ptr<Dropout<T>> make_dropout(const BlockOptions& options, const char* branch, AlignedVector<T>& mask) {
  if (options.dropout == 0) return nullptr;
  return std::make_unique<Dropout<T>>(DropoutOptions{options.name + branch, options.dropout, options.seed},
                                      options.attention.width, mask);
}

}  // namespace

template <class T>
BlockMemory<T>::BlockMemory(const BlockOptions& options, Elements rows) {
  const Elements width = rows * options.attention.width, hidden_size = rows * options.hidden;
  for (auto* values : {&normed, &heads, &middle, &middle_normed}) values->resize(index(width));
  for (auto* values : {&hidden, &activated}) values->resize(index(hidden_size));
  qkv.resize(index(3 * width));
  if (options.dropout == 0) return;
  for (auto* mask : {&attention_mask, &mlp_mask}) mask->resize(index(width));
}

template <class T>
BlockScratch<T>::BlockScratch(const BlockOptions& options, Elements rows) : attention(options.attention) {
  const Elements width = rows * options.attention.width;
  for (auto* values : {&branch, &d_branch, &d_normed, &d_heads}) values->resize(index(width));
  if (options.dropout > 0) dropped.resize(index(width));
  d_hidden.resize(index(rows * options.hidden));
  d_qkv.resize(index(3 * width));
}

template <class T>
Block<T>::Block(const BlockOptions& o, Elements rows, BlockMemory<T>& memory, BlockScratch<T>& scratch)
    : width_(o.attention.width),
      hidden_width_(o.hidden),
      attention_norm_(o.name + ".ln_1", width_, rows),
      mlp_norm_(o.name + ".ln_2", width_, rows),
      qkv_({o.name + ".attn.c_attn", width_, 3 * width_, o.bias, o.weight}),
      attention_out_({o.name + ".attn.c_proj", width_, width_, o.bias, o.residual}),
      mlp_in_({o.name + ".mlp.c_fc", width_, hidden_width_, o.bias, o.weight}),
      mlp_out_({o.name + ".mlp.c_proj", hidden_width_, width_, o.bias, o.residual}),
      attention_(o.attention, rows, scratch.attention),
      activation_(o.activation, hidden_width_),
      attention_dropout_(make_dropout(o, ".attn", memory.attention_mask)),
      mlp_dropout_(make_dropout(o, ".mlp", memory.mlp_mask)),
      memory_(memory),
      scratch_(scratch) {}

template <class T>
std::vector<Tensor> Block<T>::tensors() const {
  std::vector<Tensor> all;
  const std::array<const Layer<T>*, 6> last_to_first{&mlp_out_,       &mlp_in_, &mlp_norm_,
                                                     &attention_out_, &qkv_,    &attention_norm_};
  for (const Layer<T>* layer : last_to_first) {
    for (Tensor& tensor : layer->tensors()) all.push_back(std::move(tensor));
  }
  return all;
}

template <class T>
void Block<T>::bind(const Layout& layout) {
  const std::array<Layer<T>*, 6> layers{&attention_norm_, &qkv_, &attention_out_, &mlp_norm_, &mlp_in_, &mlp_out_};
  for (Layer<T>* layer : layers) layer->bind(layout);
}

template <class T>
void Block<T>::fill_memory(const Pass<T>& pass, Matrix<const T> x) {
  const Elements n = x.rows;
  const Matrix<T> normed = view(memory_.normed, n, width_), qkv = view(memory_.qkv, n, 3 * width_);
  const Matrix<T> heads = view(memory_.heads, n, width_), middle = view(memory_.middle, n, width_);
  const Matrix<T> middle_normed = view(memory_.middle_normed, n, width_);
  const Matrix<T> hidden = view(memory_.hidden, n, hidden_width_), branch = view(scratch_.branch, n, width_);
  attention_norm_.forward(pass, x, normed);
  qkv_.forward(pass, normed, qkv);
  attention_.forward(pass, qkv, heads);
  attention_out_.forward(pass, heads, branch);
  add_branch(pass, attention_dropout_.get(), x, middle);
  mlp_norm_.forward(pass, middle, middle_normed);
  mlp_in_.forward(pass, middle_normed, hidden);
  activation_.forward(pass, hidden, view(memory_.activated, n, hidden_width_));
}

template <class T>
void Block<T>::forward(const Pass<T>& pass, Matrix<const T> x, Matrix<T> y) {
  fill_memory(pass, x);
  mlp_out_.forward(pass, view(memory_.activated, x.rows, hidden_width_), view(scratch_.branch, x.rows, width_));
  add_branch(pass, mlp_dropout_.get(), view(memory_.middle, x.rows, width_), y);
}

template <class T>
void Block<T>::recompute(const Pass<T>& pass, Matrix<const T> x) {
  fill_memory(pass, x);
  if (mlp_dropout_) mlp_dropout_->draw(pass, x.rows);
}

// y = x + dropout(scratch_.branch)
template <class T>
void Block<T>::add_branch(const Pass<T>& pass, Dropout<T>* dropout, Matrix<const T> x, Matrix<T> y) {
  Matrix<T> branch = view(scratch_.branch, x.rows, width_);
  if (dropout != nullptr) {
    const Matrix<T> dropped = view(scratch_.dropped, x.rows, width_);
    dropout->forward(pass, branch, dropped);
    branch = dropped;
  }
  add<T>(x, branch, y);
}

template <class T>
void Block<T>::backward(const Pass<T>& pass, Matrix<const T> x, Matrix<T> d) {
  mlp_backward(pass, d);
  attention_backward(pass, x, d);
}

template <class T>
Matrix<const T> Block<T>::through_dropout(const Pass<T>& pass, Dropout<T>* dropout, Matrix<const T> d) {
  if (dropout == nullptr) return d;
  const Matrix<T> d_branch = view(scratch_.d_branch, d.rows, width_);
  dropout->backward(pass, {}, {}, d, d_branch);
  return d_branch;
}

template <class T>
void Block<T>::mlp_backward(const Pass<T>& pass, Matrix<T> d) {
  const Elements n = d.rows;
  const Matrix<T> activated = view(memory_.activated, n, hidden_width_),
                  hidden = view(memory_.hidden, n, hidden_width_);
  const Matrix<T> normed = view(memory_.middle_normed, n, width_), middle = view(memory_.middle, n, width_);
  const Matrix<T> d_hidden = view(scratch_.d_hidden, n, hidden_width_), d_normed = view(scratch_.d_normed, n, width_);
  const Matrix<T> d_middle = view(scratch_.branch, n, width_);
  mlp_out_.backward(pass, activated, {}, through_dropout(pass, mlp_dropout_.get(), d), d_hidden);
  activation_.backward(pass, hidden, activated, d_hidden, d_hidden);
  mlp_in_.backward(pass, normed, {}, d_hidden, d_normed);
  mlp_norm_.backward(pass, middle, normed, d_normed, d_middle);
  add<T>(d, d_middle, d);
}

template <class T>
void Block<T>::attention_backward(const Pass<T>& pass, Matrix<const T> x, Matrix<T> d) {
  const Elements n = d.rows;
  const Matrix<T> heads = view(memory_.heads, n, width_), qkv = view(memory_.qkv, n, 3 * width_);
  const Matrix<T> normed = view(memory_.normed, n, width_);
  const Matrix<T> d_heads = view(scratch_.d_heads, n, width_), d_qkv = view(scratch_.d_qkv, n, 3 * width_);
  const Matrix<T> d_normed = view(scratch_.d_normed, n, width_), d_x = view(scratch_.branch, n, width_);
  attention_out_.backward(pass, heads, {}, through_dropout(pass, attention_dropout_.get(), d), d_heads);
  attention_.backward(pass, qkv, heads, d_heads, d_qkv);
  qkv_.backward(pass, normed, {}, d_qkv, d_normed);
  attention_norm_.backward(pass, x, normed, d_normed, d_x);
  add<T>(d, d_x, d);
}

template struct BlockMemory<float>;
template struct BlockMemory<double>;
template struct BlockScratch<float>;
template struct BlockScratch<double>;
template class Block<float>;
template class Block<double>;

}  // namespace annulet::nn
