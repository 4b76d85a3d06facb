#include "annulet/base/error.hpp"

#include <fmt/format.h>

namespace annulet {

std::string describe(const Problem& problem) {
  std::string text = problem.what;
  if (!problem.why.empty()) text += " (" + problem.why + ")";
  text += '.';
  if (!problem.hint.empty()) text += ' ' + problem.hint + '.';
  return text;
}

void detail::contract_broken(const char* condition, std::string_view meaning, const char* file, int line) {
  throw ContractError(fmt::format("{}:{}: contract broken: {} ({})", file, line, meaning, condition));
}

}  // namespace annulet
