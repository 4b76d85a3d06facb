#pragma once
// What all readers of models do in the end: sizes that follow from others are filled in, and sizes that do not go
// together are found.
#include <optional>
#include <string>

#include "annulet/plan/architecture.hpp"

namespace annulet::plan {

struct Objection {
  std::string field;  // as in a model file
  std::string what, hint;
};

// kv_heads and head_width may be 0: not given.
std::optional<Objection> complete(Architecture& architecture);

}  // namespace annulet::plan
