#pragma once
// What this process has used.
#include "annulet/base/units.hpp"

namespace annulet::measure {

// The most memory that was resident at once (VmHWM; getrusage where /proc is missing, which may include what the
// launcher had before exec). Pages shared with other ranks are counted in each. 0 if the system does not say.
Bytes peak_resident();

}  // namespace annulet::measure
