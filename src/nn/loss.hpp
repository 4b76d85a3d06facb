#pragma once
// Losses: sums over samples in double, rows and columns in order; a NaN or an infinity in the outputs reaches the loss.
//   cross-entropy of a row with label k:  log(sum_j exp(o_j)) - o_k; a row labelled kNoLabel counts for nothing
//   squared error of a row:               sum_j (o_j - v_j)^2 / outputs
#include <memory>

#include "annulet/nn/mlp.hpp"
#include "nn/matrix.hpp"
#include "nn/product.hpp"

namespace annulet::nn {

// What the rows of the outputs should be: one of the two is empty, as in Batch.
template <class T>
struct Targets {
  std::span<const std::int32_t> labels;  // [rows]
  std::span<const T> values;             // [rows, outputs]
};

template <class T>
class LossFunction {
 public:
  virtual ~LossFunction() = default;

  // Of rows [first, end) of outputs [rows, outputs]; what backward needs of them is kept.
  virtual LossSums forward(const Targets<T>& targets, Matrix<const T> outputs, Elements first, Elements end) = 0;

  // Of all rows.
  LossSums forward(const Targets<T>& targets, Matrix<const T> outputs) {
    return forward(targets, outputs, 0, outputs.rows);
  }

  // Of all rows; losses[i] becomes the sum of micro-shard i.
  LossSums forward(const Targets<T>& targets, Matrix<const T> outputs, MicroShards micro_shards,
                   std::span<double> losses);

  // d_outputs [rows, outputs] = gradient of (sum of the rows' losses) x scale, of the last forward pass.
  virtual void backward(const Targets<T>& targets, Matrix<const T> outputs, double scale,
                        Matrix<T> d_outputs) const = 0;
};

template <class T>
std::unique_ptr<LossFunction<T>> make_loss(Loss kind, Elements outputs, Elements capacity);

}  // namespace annulet::nn
