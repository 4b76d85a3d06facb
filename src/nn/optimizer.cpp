#include "annulet/nn/optimizer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "annulet/base/aligned.hpp"
#include "annulet/base/error.hpp"

namespace annulet::nn {
namespace {

void refuse_unless(bool good, std::string_view name, double value, std::string_view range) {
  if (good) return;
  throw InputError({fmt::format("{} {} is out of range", name, value), "the optimiser could not converge",
                    fmt::format("Choose {}", range)});
}

void check(const OptimizerOptions& options) {
  const auto share = [](double x) { return x >= 0 && x < 1; };
  refuse_unless(share(options.momentum), "momentum", options.momentum, "a value from 0 to below 1");
  refuse_unless(share(options.beta1), "beta1", options.beta1, "a value from 0 to below 1");
  refuse_unless(share(options.beta2), "beta2", options.beta2, "a value from 0 to below 1");
  refuse_unless(options.epsilon >= 0 && std::isfinite(options.epsilon), "epsilon", options.epsilon, "0 or more");
  refuse_unless(options.weight_decay >= 0 && std::isfinite(options.weight_decay), "weight decay", options.weight_decay,
                "0 or more");
  if (options.nesterov && options.momentum == 0) {
    throw InputError({"nesterov is set without momentum", "it looks ahead along the momentum",
                      "Set momentum, for example to 0.9, or leave nesterov out"});
  }
}

// Elements [first, last) that all decay by the same rate.
struct DecayInterval {
  Elements first, last;
  double decay;
};

std::vector<DecayInterval> decay_intervals(const OptimizerOptions& options, const Layout& layout) {
  std::vector<DecayInterval> intervals;
  for (const Tensor& tensor : layout.tensors()) {
    const bool decays = options.decay_on == OptimizerOptions::DecayOn::all || tensor.shape.size() >= 2;
    const double decay = decays ? options.weight_decay : 0;
    const Elements last = tensor.first + tensor.count;
    if (!intervals.empty() && intervals.back().decay == decay) {
      intervals.back().last = last;
    } else {
      intervals.push_back({tensor.first, last, decay});
    }
  }
  return intervals;
}

// One contiguous run of elements with one rate of decay.
template <class T>
struct Run {
  T* weights;
  const T* gradients;
  Elements state, count;  // place in the state
  T decay;
};

template <class T>
class Intervals : public Optimizer<T> {
 public:
  Intervals(const OptimizerOptions& options, const Layout& layout, std::span<const Slice> owned)
      : options_(options), intervals_(decay_intervals(options, layout)) {
    for (const Slice& slice : owned) {
      ANNULET_EXPECTS(slice.first >= owned_end() && slice.count >= 0, "owned slices ascend and do not overlap");
      owned_.push_back({slice, size_});
      size_ += slice.count;
    }
    ANNULET_EXPECTS(owned_end() <= layout.size(), "owned slices lie in the model");
  }

  void begin_step() override { ++steps_; }
  long steps() const override { return steps_; }
  void resume(long steps) override { steps_ = steps; }

  void update(Elements first, std::span<T> weights, std::span<const T> gradients, const Update& update) override {
    if (weights.empty()) return;
    const Elements last = first + static_cast<Elements>(weights.size()), state = state_of(first, last);
    ANNULET_EXPECTS(weights.size() == gradients.size(), "weights and gradients are the same slice");
    ANNULET_EXPECTS(steps_ > 0, "begin_step comes before update");
    for (const DecayInterval& interval : intervals_) {
      const Elements from = std::max(first, interval.first), to = std::min(last, interval.last);
      if (from >= to) continue;
      const Elements offset = from - first;
      run({weights.data() + offset, gradients.data() + offset, state + offset, to - from,
           static_cast<T>(interval.decay)},
          update);
    }
  }

 protected:
  virtual void run(const Run<T>& run, const Update& update) = 0;

  AlignedVector<T> zeros() const { return AlignedVector<T>(static_cast<std::size_t>(size_)); }

  OptimizerOptions options_;
  long steps_ = 0;

 private:
  struct Owned {
    Slice slice;
    Elements state;  // where its state begins
  };

  Elements owned_end() const { return owned_.empty() ? 0 : owned_.back().slice.first + owned_.back().slice.count; }

  // Where the state of elements [first, last) begins.
  Elements state_of(Elements first, Elements last) const {
    const auto after = std::ranges::upper_bound(owned_, first, {}, [](const Owned& o) { return o.slice.first; });
    ANNULET_EXPECTS(after != owned_.begin(), "a slice is owned");
    const Owned& owned = *std::prev(after);
    ANNULET_EXPECTS(last <= owned.slice.first + owned.slice.count, "a slice is owned");
    return owned.state + first - owned.slice.first;
  }

  std::vector<Owned> owned_;
  Elements size_ = 0;  // of the state
  std::vector<DecayInterval> intervals_;
};

template <class T>
class Sgd final : public Intervals<T> {
 public:
  Sgd(const OptimizerOptions& options, const Layout& layout, std::span<const Slice> owned)
      : Intervals<T>(options, layout, owned) {
    if (options.momentum > 0) momentum_ = this->zeros();
  }

  std::vector<typename Optimizer<T>::State> state() override {
    if (momentum_.empty()) return {};
    return {{"momentum", momentum_}};
  }

 private:
  void run(const Run<T>& run, const Update& update) override {
    if (momentum_.empty()) return plain(run, update);
    if (this->options_.nesterov) return with_momentum<true>(run, update);
    with_momentum<false>(run, update);
  }

  static void plain(const Run<T>& run, const Update& update) {
    const T rate = static_cast<T>(update.learning_rate), scale = static_cast<T>(update.gradient_scale);
    T* __restrict w = run.weights;
    for (Elements i = 0; i < run.count; ++i) w[i] -= rate * (run.gradients[i] * scale + run.decay * w[i]);
  }

  // The buffer starts as 0, so that after the first step it is the gradient, as PyTorch's.
  template <bool nesterov>
  void with_momentum(const Run<T>& run, const Update& update) {
    const T rate = static_cast<T>(update.learning_rate), scale = static_cast<T>(update.gradient_scale);
    const T momentum = static_cast<T>(this->options_.momentum), decay = run.decay;
    T* __restrict w = run.weights;
    T* __restrict m = momentum_.data() + run.state;
    const T* __restrict g = run.gradients;
    for (Elements i = 0; i < run.count; ++i) {
      const T gradient = g[i] * scale + decay * w[i];
      m[i] = momentum * m[i] + gradient;
      w[i] -= rate * (nesterov ? gradient + momentum * m[i] : m[i]);
    }
  }

  AlignedVector<T> momentum_;
};

// Adam (Kingma & Ba, arXiv:1412.6980) and AdamW (Loshchilov & Hutter, arXiv:1711.05101):
//   m = b1 m + (1 - b1) g,  v = b2 v + (1 - b2) g^2,  w -= rate / (1 - b1^t) * m / (sqrt(v / (1 - b2^t)) + eps)
template <class T>
class Adam final : public Intervals<T> {
 public:
  Adam(const OptimizerOptions& options, const Layout& layout, std::span<const Slice> owned)
      : Intervals<T>(options, layout, owned), m_(this->zeros()), v_(this->zeros()) {}

  std::vector<typename Optimizer<T>::State> state() override { return {{"m", m_}, {"v", v_}}; }

 private:
  void run(const Run<T>& run, const Update& update) override {
    const OptimizerOptions& options = this->options_;
    const bool decoupled = options.kind == OptimizerOptions::Kind::adamw;
    const auto t = static_cast<double>(this->steps_);
    const T shrink = decoupled ? static_cast<T>(1 - update.learning_rate * static_cast<double>(run.decay)) : T(1);
    const T decay = decoupled ? T(0) : run.decay;
    const T rate = static_cast<T>(update.learning_rate / (1 - std::pow(options.beta1, t)));
    const T correction = static_cast<T>(1 / std::sqrt(1 - std::pow(options.beta2, t)));
    const T b1 = static_cast<T>(options.beta1), b2 = static_cast<T>(options.beta2);
    const T rest1 = static_cast<T>(1 - options.beta1), rest2 = static_cast<T>(1 - options.beta2);
    const T scale = static_cast<T>(update.gradient_scale), epsilon = static_cast<T>(options.epsilon);
    T* __restrict w = run.weights;
    T* __restrict m = m_.data() + run.state;
    T* __restrict v = v_.data() + run.state;
    const T* __restrict g = run.gradients;
    for (Elements i = 0; i < run.count; ++i) {
      const T gradient = g[i] * scale + decay * w[i];
      m[i] = b1 * m[i] + rest1 * gradient;
      v[i] = b2 * v[i] + rest2 * gradient * gradient;
      w[i] = shrink * w[i] - rate * m[i] / (std::sqrt(v[i]) * correction + epsilon);
    }
  }

  AlignedVector<T> m_, v_;
};

}  // namespace

int state_values(const OptimizerOptions& options) {
  if (options.kind == OptimizerOptions::Kind::sgd) return options.momentum > 0 ? 1 : 0;
  return 2;
}

template <class T>
std::unique_ptr<Optimizer<T>> make_optimizer(const OptimizerOptions& options, const Layout& layout,
                                             std::span<const Slice> owned) {
  check(options);
  if (options.kind == OptimizerOptions::Kind::sgd) return std::make_unique<Sgd<T>>(options, layout, owned);
  return std::make_unique<Adam<T>>(options, layout, owned);
}

template <class T>
std::unique_ptr<Optimizer<T>> make_optimizer(const OptimizerOptions& options, const Layout& layout) {
  const Slice all{0, layout.size()};
  return make_optimizer<T>(options, layout, std::span(&all, 1));
}

template std::unique_ptr<Optimizer<float>> make_optimizer<float>(const OptimizerOptions&, const Layout&,
                                                                 std::span<const Slice>);
template std::unique_ptr<Optimizer<double>> make_optimizer<double>(const OptimizerOptions&, const Layout&,
                                                                   std::span<const Slice>);
template std::unique_ptr<Optimizer<float>> make_optimizer<float>(const OptimizerOptions&, const Layout&);
template std::unique_ptr<Optimizer<double>> make_optimizer<double>(const OptimizerOptions&, const Layout&);

}  // namespace annulet::nn
