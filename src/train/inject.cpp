#include "annulet/train/inject.hpp"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <csignal>
#include <stdexcept>
#include <string>
#include <thread>

#include "annulet/base/error.hpp"

namespace annulet::train {
namespace {

long number_after(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  long value = -1;
  if (at != std::string_view::npos) {
    const std::string_view digits = text.substr(at + key.size());
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
  }
  if (value < 0)
    throw InputError(
        {fmt::format("'{}' injects nothing", text), fmt::format("{} is missing", key), "Write nan:rank=1,step=3"});
  return value;
}

Injection::Kind kind_of(std::string_view name) {
  using Kind = Injection::Kind;
  if (name == "throw") return Kind::throws;
  if (name == "nan") return Kind::nan;
  if (name == "slow") return Kind::slow;
  if (name == "stop") return Kind::stop;
  throw InputError({fmt::format("'{}' cannot be injected", name), "", "Choose throw, nan, slow or stop"});
}

}  // namespace

Injection parse_injection(std::string_view text) {
  if (text.empty()) return {};
  return {kind_of(text.substr(0, text.find(':'))), static_cast<int>(number_after(text, "rank=")),
          number_after(text, "step=")};
}

bool inject(const Injection& injection, int rank, long step) {
  using Kind = Injection::Kind;
  if (injection.kind == Kind::none || rank != injection.rank || step < injection.step) return false;
  if (injection.kind == Kind::slow) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  if (step > injection.step) return false;
  if (injection.kind == Kind::throws) throw std::runtime_error("injected failure");
  if (injection.kind == Kind::stop) std::raise(SIGSTOP);
  return injection.kind == Kind::nan;
}

}  // namespace annulet::train
