#include "nn/loss.hpp"

#include <algorithm>
#include <cmath>

#include "annulet/base/aligned.hpp"
#include "annulet/base/error.hpp"
#include "nn/vector_math.hpp"

namespace annulet::nn {
namespace {

template <class T>
class CrossEntropy final : public LossFunction<T> {
 public:
  CrossEntropy(Elements outputs, Elements capacity) : probabilities_(static_cast<std::size_t>(outputs * capacity)) {}

  using LossFunction<T>::forward;
  LossSums forward(const Targets<T>& targets, Matrix<const T> outputs, Elements first, Elements end) override {
    ANNULET_EXPECTS(std::ssize(targets.labels) == outputs.rows, "there is one label per row");
    LossSums sums;
    for (Elements r = first; r < end; ++r) {
      const Elements label = targets.labels[index(r)];
      if (label == kNoLabel) continue;
      ++sums.targets;
      ANNULET_EXPECTS(label >= 0 && label < outputs.columns, "a label is the number of an output");
      const T* row = outputs.row(r);
      const T most = largest(outputs.columns, row);
      const double log_sum = softmax(row, most, outputs.columns, &probabilities_[index(r * outputs.columns)]);
      sums.loss += log_sum - (static_cast<double>(row[label]) - static_cast<double>(most));
      if (std::find(row, row + outputs.columns, most) == row + label) ++sums.correct;
    }
    return sums;
  }

  void backward(const Targets<T>& targets, Matrix<const T> outputs, double scale, Matrix<T> d_outputs) const override {
    for (Elements r = 0; r < outputs.rows; ++r) {
      const T* probabilities = &probabilities_[index(r * outputs.columns)];
      T* row = d_outputs.row(r);
      const Elements label = targets.labels[index(r)];
      if (label == kNoLabel) {
        std::fill_n(row, outputs.columns, T(0));
        continue;
      }
      for (Elements c = 0; c < outputs.columns; ++c) row[c] = probabilities[c] * static_cast<T>(scale);
      row[label] = (probabilities[label] - 1) * static_cast<T>(scale);
    }
  }

 private:
  static std::size_t index(Elements i) { return static_cast<std::size_t>(i); }

  // Returns log(sum_j exp(o_j - most)). A NaN that the search for the largest passed over comes back in the sum.
  static double softmax(const T* row, T most, Elements n, T* probabilities) {
    const Packet<T> shift = splat<T>(most);
    transform(
        n, probabilities, [&](Packet<T> o) { return exponential<T>(Eigen::internal::psub(o, shift)); }, row);
    double sum = 0;
    for (Elements c = 0; c < n; ++c) sum += static_cast<double>(probabilities[c]);
    const T inverse = static_cast<T>(1 / sum);
    for (Elements c = 0; c < n; ++c) probabilities[c] *= inverse;
    return std::log(sum);
  }

  AlignedVector<T> probabilities_;  // [capacity, outputs] of the last forward pass
};

template <class T>
class SquaredError final : public LossFunction<T> {
 public:
  using LossFunction<T>::forward;
  LossSums forward(const Targets<T>& targets, Matrix<const T> outputs, Elements first, Elements end) override {
    ANNULET_EXPECTS(std::ssize(targets.values) == outputs.size(), "there is one value per output");
    LossSums sums{.targets = end - first};
    for (Elements r = first; r < end; ++r) {
      double squares = 0;
      for (Elements c = 0; c < outputs.columns; ++c) {
        const double difference = static_cast<double>(outputs.row(r)[c]) - value(targets, r * outputs.columns + c);
        squares += difference * difference;
      }
      sums.loss += squares / static_cast<double>(outputs.columns);
    }
    return sums;
  }

  void backward(const Targets<T>& targets, Matrix<const T> outputs, double scale, Matrix<T> d_outputs) const override {
    const double factor = 2 * scale / static_cast<double>(outputs.columns);
    for (Elements i = 0; i < outputs.size(); ++i) {
      d_outputs.data[i] = static_cast<T>((static_cast<double>(outputs.data[i]) - value(targets, i)) * factor);
    }
  }

 private:
  static double value(const Targets<T>& targets, Elements i) {
    return static_cast<double>(targets.values[static_cast<std::size_t>(i)]);
  }
};

}  // namespace

template <class T>
LossSums LossFunction<T>::forward(const Targets<T>& targets, Matrix<const T> outputs, MicroShards micro_shards,
                                  std::span<double> losses) {
  if (micro_shards.samples.empty()) return forward(targets, outputs);
  ANNULET_EXPECTS(losses.size() == micro_shards.samples.size(), "there is a loss for each micro-shard");
  LossSums all;
  Elements row = 0;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const Elements end = row + micro_shards.samples[i] * micro_shards.rows_of_sample;
    const LossSums sums = forward(targets, outputs, row, end);
    losses[i] = sums.loss;
    all.loss += sums.loss, all.correct += sums.correct, all.targets += sums.targets;
    row = end;
  }
  ANNULET_EXPECTS(row == outputs.rows, "every row belongs to a micro-shard");
  return all;
}

template <class T>
std::unique_ptr<LossFunction<T>> make_loss(Loss kind, Elements outputs, Elements capacity) {
  if (kind == Loss::mse) return std::make_unique<SquaredError<T>>();
  return std::make_unique<CrossEntropy<T>>(outputs, capacity);
}

template class LossFunction<float>;
template class LossFunction<double>;
template std::unique_ptr<LossFunction<float>> make_loss<float>(Loss, Elements, Elements);
template std::unique_ptr<LossFunction<double>> make_loss<double>(Loss, Elements, Elements);

}  // namespace annulet::nn
