#include "nn/activation.hpp"

#include <algorithm>
#include <numbers>

#include "nn/vector_math.hpp"

namespace annulet::nn {
namespace {

using Eigen::internal::padd;
using Eigen::internal::pcmp_lt;
using Eigen::internal::pmadd;
using Eigen::internal::pmul;
using Eigen::internal::pselect;
using Eigen::internal::psub;

// Each functor: value f(x), and slope f'(x) from x and y = f(x).

template <class T>
struct Relu {
  using P = Packet<T>;
  static P value(P x) { return pselect(pcmp_lt(x, splat<T>(0)), splat<T>(0), x); }  // NaN stays NaN
  static P slope(P, P y) { return pselect(pcmp_lt(splat<T>(0), y), splat<T>(1), splat<T>(0)); }
};

template <class T>
struct Tanh {
  using P = Packet<T>;
  static P value(P x) { return hyperbolic_tangent<T>(x); }
  static P slope(P, P y) { return psub(splat<T>(1), pmul(y, y)); }
};

template <class T>
struct Gelu {
  using P = Packet<T>;
  static P normal_cdf(P x) {
    const P half = splat<T>(T(0.5));
    return pmadd(half, error_function<T>(pmul(x, splat<T>(1 / std::numbers::sqrt2_v<T>))), half);
  }
  static P value(P x) { return pmul(x, normal_cdf(x)); }
  static P slope(P x, P) {
    constexpr T density_at_0 = std::numbers::inv_sqrtpi_v<T> / std::numbers::sqrt2_v<T>;
    const P density = pmul(splat<T>(density_at_0), exponential<T>(pmul(splat<T>(T(-0.5)), pmul(x, x))));
    return pmadd(x, density, normal_cdf(x));
  }
};

template <class T>
struct GeluTanh {
  using P = Packet<T>;
  static constexpr T kRate = std::numbers::sqrt2_v<T> * std::numbers::inv_sqrtpi_v<T>;  // sqrt(2 / pi)
  static constexpr T kCubic = T(0.044715);
  static P squash(P x) {
    const P inner = pmadd(pmul(splat<T>(kCubic), pmul(x, x)), x, x);
    return hyperbolic_tangent<T>(pmul(splat<T>(kRate), inner));
  }
  static P value(P x) { return pmul(pmul(splat<T>(T(0.5)), x), padd(splat<T>(1), squash(x))); }
  static P slope(P x, P) {
    const P t = squash(x), half = splat<T>(T(0.5));
    const P inner_slope = pmul(splat<T>(kRate), pmadd(splat<T>(3 * kCubic), pmul(x, x), splat<T>(1)));
    const P rest = pmul(pmul(half, x), pmul(psub(splat<T>(1), pmul(t, t)), inner_slope));
    return pmadd(half, t, padd(half, rest));
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

constexpr Elements kPanelElements = 1 << 18;  // a fraction of a millisecond in float

template <class Body>
void for_each_panel(Elements n, Progress& progress, Body body) {
  for (Elements first = 0; first < n; first += kPanelElements) {
    body(first, std::min(n, first + kPanelElements));
    progress.pulse();
  }
}

}  // namespace

std::string_view to_text(Activation activation) {
  switch (activation) {
    case Activation::relu:
      return "relu";
    case Activation::gelu:
      return "gelu";
    case Activation::gelu_tanh:
      return "gelu_tanh";
    case Activation::tanh:
      return "tanh";
  }
  return "?";
}

template <class T>
void ActivationLayer<T>::forward(const Pass<T>& pass, Matrix<const T> x, Matrix<T> y) {
  with_activation<T>(kind_, [&](auto f) {
    for_each_panel(x.size(), pass.progress, [&](Elements first, Elements last) {
      transform(
          last - first, y.data + first, [f](Packet<T> v) { return f.value(v); }, x.data + first);
    });
  });
}

template <class T>
void ActivationLayer<T>::backward(const Pass<T>& pass, Matrix<const T> x, Matrix<const T> y, Matrix<const T> dy,
                                  Matrix<T> dx) {
  if (dx.empty()) return;
  with_activation<T>(kind_, [&](auto f) {
    for_each_panel(x.size(), pass.progress, [&](Elements first, Elements last) {
      const auto chained = [f](Packet<T> in, Packet<T> out, Packet<T> d) { return pmul(d, f.slope(in, out)); };
      transform(last - first, dx.data + first, chained, x.data + first, y.data + first, dy.data + first);
    });
  });
}

template class ActivationLayer<float>;
template class ActivationLayer<double>;

}  // namespace annulet::nn
