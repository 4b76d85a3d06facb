#include "annulet/train/inject.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <stdexcept>
#include <thread>

#include "annulet/base/error.hpp"

namespace annulet::train {
namespace {

// The number behind "KEY=" at the beginning of `text`, which loses both; what follows must be `end`.
long take_number(std::string_view& text, std::string_view key, std::string_view end) {
  long value = -1;
  if (text.starts_with(key)) {
    const std::string_view digits = text.substr(key.size());
    const auto [rest, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error == std::errc{}) text = digits.substr(static_cast<std::size_t>(rest - digits.data()));
  }
  if (value < 0 || !text.starts_with(end) || (end.empty() && !text.empty())) {
    throw InputError({fmt::format("an injection ends in '{}'", text), "", "Write nan:rank=1,step=3, or rank=all"});
  }
  text.remove_prefix(end.size());
  return value;
}

Injection::Kind kind_of(std::string_view name) {
  using Kind = Injection::Kind;
  if (name == "throw") return Kind::throws;
  if (name == "nan") return Kind::nan;
  if (name == "slow") return Kind::slow;
  if (name == "stop") return Kind::stop;
  if (name == "flip") return Kind::flip;
  throw InputError({fmt::format("'{}' cannot be injected", name), "", "Choose throw, nan, slow, stop or flip"});
}

bool strikes(const Injection& injection, int rank) { return !injection.rank || *injection.rank == rank; }

}  // namespace

Injection parse_injection(std::string_view text) {
  if (text.empty()) return {};
  Injection injection;
  const std::size_t colon = std::min(text.find(':'), text.size());
  injection.kind = kind_of(text.substr(0, colon));
  text.remove_prefix(std::min(colon + 1, text.size()));
  if (constexpr std::string_view kAll = "rank=all,"; text.starts_with(kAll)) {
    text.remove_prefix(kAll.size());
  } else {
    injection.rank = static_cast<int>(take_number(text, "rank=", ","));
  }
  injection.step = take_number(text, "step=", "");
  return injection;
}

bool inject(const Injection& injection, int rank, long step) {
  using Kind = Injection::Kind;
  if (injection.kind == Kind::none || !strikes(injection, rank) || step < injection.step) return false;
  if (injection.kind == Kind::slow) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  if (step > injection.step) return false;
  if (injection.kind == Kind::throws) throw std::runtime_error("injected failure");
  if (injection.kind == Kind::stop) std::raise(SIGSTOP);
  return injection.kind == Kind::nan;
}

bool flips(const Injection& injection, int rank, long step) {
  return injection.kind == Injection::Kind::flip && strikes(injection, rank) && step == injection.step;
}

}  // namespace annulet::train
