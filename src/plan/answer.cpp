#include "annulet/plan/answer.hpp"

#include <fmt/format.h>

namespace annulet::plan {
namespace {

std::string with_thousands(std::int64_t count) {
  std::string digits = fmt::format("{}", count);
  const std::size_t sign = count < 0 ? 1 : 0;
  for (std::size_t at = digits.size(); at > sign + 3;) digits.insert(at -= 3, 1, ',');
  return digits;
}

}  // namespace

Cell cell() { return {{}, "-"}; }
Cell cell(std::string text) { return {text, text}; }
Cell cell(const char* text) { return cell(std::string(text)); }
Cell cell(std::int64_t count) { return {count, with_thousands(count)}; }
Cell cell(Bytes bytes) { return {bytes.value(), to_text(bytes)}; }
Cell cell(Seconds time) { return {time.count(), to_text(time)}; }
std::string binary(Bytes bytes) {
  const std::int64_t n = bytes.value();
  for (const auto& [shift, unit] : {std::pair{30, "GiB"}, {20, "MiB"}, {10, "KiB"}}) {
    if (n >= (std::int64_t{1} << shift) && n % (std::int64_t{1} << shift) == 0)
      return fmt::format("{} {}", n >> shift, unit);
  }
  return to_text(bytes);
}

Cell gigabytes(Bytes bytes) { return {bytes.value(), fmt::format("{:.2f}", bytes.as_double() / 1e9)}; }
Cell milliseconds(Seconds time) { return {time.count(), fmt::format("{:.1f}", time.count() * 1e3)}; }
Cell percent(double part) { return {part, fmt::format("{:.1f} %", 100 * part)}; }
Cell number(double value, int decimals) { return {value, fmt::format("{:.{}f}", value, decimals)}; }

}  // namespace annulet::plan
