#pragma once
// The golden problem: x[n, i] = sin(0.1 (5n + i)), n < 8, i < 5; y = n mod 3; W1[i, j] = 0.5 cos(0.3 (4i + j)) (5 x 4),
// W2[j, k] = 0.5 sin(0.7 (3j + k)) (4 x 3), biases 0, tanh, mean cross-entropy. Losses by PyTorch in double precision.
#include <cmath>

#include "annulet/data/dataset.hpp"
#include "annulet/train/config.hpp"
#include "annulet/train/trainer.hpp"

namespace annulet::train::golden {

inline constexpr double kSgdLosses[] = {1.099041651057, 1.097686179836, 1.096407676130,
                                        1.095198910121, 1.094053470671, 1.092965658560};
inline constexpr double kAdamLosses[] = {1.099041651057, 1.094765997536, 1.090931177998,
                                         1.087411917979, 1.084067458883, 1.080781319785};
inline constexpr double kFirstNorm = 0.117289349874;

inline data::Dataset dataset() {
  std::vector<double> x;
  std::vector<std::int32_t> y;
  for (int n = 0; n < 8; ++n) {
    for (int i = 0; i < 5; ++i) x.push_back(std::sin(0.1 * (5 * n + i)));
    y.push_back(n % 3);
  }
  return data::Dataset::classification(std::move(x), std::move(y), 3);
}

inline Config config() {
  Config config;
  config.widths = {5, 4, 3};
  config.activation = "tanh";
  config.batch = 8;
  config.shuffle = false;
  config.steps = 6;
  config.lr = 0.1;
  config.bucket = config.first_bucket = Bytes(64);
  config.segment = Bytes(16);
  return config;
}

inline Config adam() {
  Config adam = config();
  adam.optimizer = "adam";
  adam.lr = 0.01;
  return adam;
}

template <class T>
void set_weights(Trainer<T>& trainer) {
  std::vector<T> weights(static_cast<std::size_t>(trainer.layout().size()));
  T* w1 = &weights[static_cast<std::size_t>(trainer.layout().find("layers.0.weight")->first)];
  T* w2 = &weights[static_cast<std::size_t>(trainer.layout().find("layers.1.weight")->first)];
  for (int i = 0; i < 5; ++i) {
    for (int j = 0; j < 4; ++j) w1[j * 5 + i] = static_cast<T>(0.5 * std::cos(0.3 * (4 * i + j)));
  }
  for (int j = 0; j < 4; ++j) {
    for (int k = 0; k < 3; ++k) w2[k * 4 + j] = static_cast<T>(0.5 * std::sin(0.7 * (3 * j + k)));
  }
  trainer.assign_weights({0, trainer.layout().size()}, weights);
}

// All weights, on every rank.
template <class T>
std::vector<T> weights_of(Trainer<T>& trainer) {
  std::vector<T> weights(static_cast<std::size_t>(trainer.layout().size()));
  trainer.visit_weights([&](schedule::Interval elements, std::span<const T> values) {
    std::copy(values.begin(), values.end(), weights.begin() + elements.first);
  });
  return weights;
}

}  // namespace annulet::train::golden
