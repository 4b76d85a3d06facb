#pragma once
// Units as types: time, bytes, rates and operations never cross a function boundary as a bare double.
// Element counts and indices are plain signed integers, `Elements`.
#include <chrono>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace annulet {

using Elements = std::int64_t;

using Clock = std::chrono::steady_clock;
using Instant = Clock::time_point;
using Seconds = std::chrono::duration<double>;

// A number with a unit. Sums and differences keep the unit; a ratio of two is a plain number.
template <class Tag, class Rep>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(Rep value) : value_(value) {}

  constexpr Rep value() const { return value_; }
  constexpr double as_double() const { return static_cast<double>(value_); }

  constexpr Quantity& operator+=(Quantity other) { return value_ += other.value_, *this; }
  constexpr Quantity& operator-=(Quantity other) { return value_ -= other.value_, *this; }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity(a.value_ + b.value_); }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity(a.value_ - b.value_); }
  friend constexpr Quantity operator*(Quantity a, Rep k) { return Quantity(a.value_ * k); }
  friend constexpr Quantity operator*(Rep k, Quantity a) { return Quantity(a.value_ * k); }
  friend constexpr double operator/(Quantity a, Quantity b) { return a.as_double() / b.as_double(); }
  friend constexpr auto operator<=>(Quantity, Quantity) = default;

 private:
  Rep value_{};
};

using Bytes = Quantity<struct BytesTag, std::int64_t>;
using ByteRate = Quantity<struct ByteRateTag, double>;  // bytes per second
using Flops = Quantity<struct FlopsTag, double>;        // floating-point operations
using FlopRate = Quantity<struct FlopRateTag, double>;  // operations per second

constexpr ByteRate operator/(Bytes bytes, Seconds time) { return ByteRate(bytes.as_double() / time.count()); }
constexpr Seconds operator/(Bytes bytes, ByteRate rate) { return Seconds(bytes.as_double() / rate.value()); }
constexpr FlopRate operator/(Flops flops, Seconds time) { return FlopRate(flops.value() / time.count()); }

// What people type: "4MiB", "64 kB", "1024"; "1ms", "300", "2.5us" (seconds without a unit); "125MB/s", "1Gb/s";
// "55GFLOP/s". Throw InputError naming `text` and the forms that are understood; never accept a negative or non-finite
// value.
Bytes parse_bytes(std::string_view text);
Seconds parse_seconds(std::string_view text);
ByteRate parse_rate(std::string_view text);
FlopRate parse_flop_rate(std::string_view text);

// What people read, three or four significant digits: "7.45 MB", "1.24 ms", "3.1 GB/s", "128 GFLOP/s".
std::string to_text(Bytes bytes);
std::string to_text(Seconds time);
std::string to_text(ByteRate rate);
std::string to_text(FlopRate rate);

}  // namespace annulet
