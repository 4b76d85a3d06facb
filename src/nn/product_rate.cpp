#include "annulet/nn/product_rate.hpp"

#include <algorithm>

#include "annulet/base/aligned.hpp"
#include "nn/product.hpp"

namespace annulet::nn {

FlopRate product_rate(Seconds budget) {
  constexpr Elements rows = 256, inner = 512, columns = 1024;
  prepare_products();
  AlignedVector<float> dy(rows * inner, 0.5F), w(inner * columns, 0.25F), dx(rows * columns);
  Progress quiet;
  Seconds best{1e300};
  const Instant begin = Clock::now();
  do {
    const Instant start = Clock::now();
    multiply_backward<float>({dy.data(), rows, inner}, {w.data(), inner, columns}, {dx.data(), rows, columns}, quiet);
    best = std::min(best, Seconds(Clock::now() - start));
  } while (Clock::now() - begin < budget);
  return Flops(2.0 * rows * inner * columns) / best;
}

}  // namespace annulet::nn
