#pragma once
// What products reach on this core: a large one, [256, 512] by [512, 1024], as layers do it. Beside the FMA peak it
// says how much of the distance to the peak is Eigen's (or the BLAS's), and how much the model's.
#include "annulet/base/units.hpp"

namespace annulet::nn {

// The best of several products within the budget; at least one, of a millisecond or so, that fits between two other
// ranks on the same core. Allocates 4 MB for the time being.
FlopRate product_rate(Seconds budget = Seconds(0.05));

}  // namespace annulet::nn
