#pragma once
// Errors. Every message follows one grammar: `what is wrong (why it matters). What to try.`
//   InputError     the user's files, options or cluster: refused before training starts where possible.
//   RunError       something failed while running (a deadline, a mismatch of bytes, a non-finite gradient).
//   ContractError  a programmer broke a function's contract (ANNULET_EXPECTS).
#include <stdexcept>
#include <string>
#include <string_view>

namespace annulet {

// The three parts of a message; `why` and `hint` may be empty.
struct Problem {
  std::string what;
  std::string why{};
  std::string hint{};
};

std::string describe(const Problem& problem);

class Error : public std::runtime_error {
 public:
  explicit Error(const Problem& problem) : std::runtime_error(describe(problem)) {}
};

class InputError : public Error {
 public:
  using Error::Error;
};

class RunError : public Error {
 public:
  using Error::Error;
};

class ContractError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

namespace detail {
[[noreturn]] void contract_broken(const char* condition, std::string_view meaning, const char* file, int line);
}

}  // namespace annulet

// Checks what a caller owes: ANNULET_EXPECTS(first >= 0, "an interval starts at or after element 0").
#define ANNULET_EXPECTS(condition, meaning) \
  ((condition) ? void() : ::annulet::detail::contract_broken(#condition, (meaning), __FILE__, __LINE__))
