#pragma once
// Failures on demand, to prove that a run ends as it should: `throw`, `nan` (in this rank's weights, for one step),
// `slow` (50 ms more in every step from then on), `stop` (the process stops as by SIGSTOP), `flip` (after the step the
// last bit of one weight that the rank updates), on one rank or all, from one step.
#include <optional>
#include <string_view>

namespace annulet::train {

struct Injection {
  enum class Kind { none, throws, nan, slow, stop, flip };
  Kind kind = Kind::none;
  std::optional<int> rank{};  // none: all
  long step = 0;
};

// Reads "nan:rank=1,step=3" and "throw:rank=all,step=2"; empty text is no injection. Throws InputError.
Injection parse_injection(std::string_view text);

// Called at the beginning of a step on every rank. True if this rank's weights are to be spoilt.
bool inject(const Injection& injection, int rank, long step);

// Called at the end of a step on every rank. True if a bit of this rank's weights is to be flipped.
bool flips(const Injection& injection, int rank, long step);

}  // namespace annulet::train
