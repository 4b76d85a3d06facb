#include "nn/activation.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace annulet::nn {
namespace {

// Each functor: value f(x), and slope f'(x) from x and y = f(x).

template <class T>
struct Relu {
  static T value(T x) { return x < 0 ? T(0) : x; }  // written so that NaN stays NaN
  static T slope(T, T y) { return y > 0 ? T(1) : T(0); }
};

template <class T>
struct Tanh {
  static T value(T x) { return std::tanh(x); }
  static T slope(T, T y) { return 1 - y * y; }
};

template <class T>
struct Gelu {
  static T normal_cdf(T x) { return T(0.5) * (1 + std::erf(x / std::numbers::sqrt2_v<T>)); }
  static T value(T x) { return x * normal_cdf(x); }
  static T slope(T x, T) {
    const T density = std::exp(T(-0.5) * x * x) * std::numbers::inv_sqrtpi_v<T> / std::numbers::sqrt2_v<T>;
    return normal_cdf(x) + x * density;
  }
};

template <class T>
struct GeluTanh {
  static constexpr T kRate = std::numbers::sqrt2_v<T> * std::numbers::inv_sqrtpi_v<T>;  // sqrt(2 / pi)
  static constexpr T kCubic = T(0.044715);
  static T squash(T x) { return std::tanh(kRate * (x + kCubic * x * x * x)); }
  static T value(T x) { return T(0.5) * x * (1 + squash(x)); }
  static T slope(T x, T) {
    const T t = squash(x);
    return T(0.5) * (1 + t) + T(0.5) * x * (1 - t * t) * kRate * (1 + 3 * kCubic * x * x);
  }
};

template <class T, class Body>
void with_activation(Activation kind, Body body) {
  switch (kind) {
    case Activation::relu:
      return body(Relu<T>{});
    case Activation::gelu:
      return body(Gelu<T>{});
    case Activation::gelu_tanh:
      return body(GeluTanh<T>{});
    case Activation::tanh:
      return body(Tanh<T>{});
  }
}

constexpr Elements kPanelElements = 16384;  // well under a millisecond of the slowest activation

template <class Body>
void for_each_panel(Elements n, Progress& progress, Body body) {
  for (Elements first = 0; first < n; first += kPanelElements) {
    body(first, std::min(n, first + kPanelElements));
    progress.pulse();
  }
}

}  // namespace

template <class T>
void ActivationLayer<T>::forward(const Pass<T>& pass, Matrix<const T> x, Matrix<T> y) {
  with_activation<T>(kind_, [&](auto f) {
    for_each_panel(x.size(), pass.progress, [&](Elements first, Elements last) {
      const T* from = x.data;
      T* __restrict to = y.data;
      for (Elements i = first; i < last; ++i) to[i] = f.value(from[i]);
    });
  });
}

template <class T>
void ActivationLayer<T>::backward(const Pass<T>& pass, Matrix<const T> x, Matrix<const T> y, Matrix<const T> dy,
                                  Matrix<T> dx) {
  if (dx.empty()) return;
  with_activation<T>(kind_, [&](auto f) {
    for_each_panel(x.size(), pass.progress, [&](Elements first, Elements last) {
      T* __restrict to = dx.data;
      for (Elements i = first; i < last; ++i) to[i] = dy.data[i] * f.slope(x.data[i], y.data[i]);
    });
  });
}

template class ActivationLayer<float>;
template class ActivationLayer<double>;

}  // namespace annulet::nn
