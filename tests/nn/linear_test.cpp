#include "nn/linear.hpp"

#include "support.hpp"

namespace annulet::nn {
namespace {

TEST(Linear, HasTheGradientsOfItsForwardPass) {
  for (const Elements samples : {1, 2, 7}) {
    for (const bool bias : {true, false}) {
      Linear<double> layer({"layers.0", 5, 3, bias});
      check_layer(layer, samples, 5);
    }
  }
  Linear<double> narrow({"layers.0", 1, 1});
  check_layer(narrow, 3, 1);
}

}  // namespace
}  // namespace annulet::nn
