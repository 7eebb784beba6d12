// Units, and the arithmetic that is easy to get wrong. Sizes are int64_t bytes, times int64_t
// nanoseconds, rates int64_t bytes per second; each name ends with its unit.
#pragma once

#include <cstdint>
#include <limits>

namespace spillway::base {

inline constexpr int64_t kKibibyte = int64_t{1} << 10;
inline constexpr int64_t kMebibyte = int64_t{1} << 20;
inline constexpr int64_t kGibibyte = int64_t{1} << 30;
inline constexpr int64_t kNanosPerSecond = 1'000'000'000;

__extension__ using Wide = __int128;

// Requires non-negative values and a positive `step`. Saturates.
constexpr int64_t round_up(int64_t value, int64_t step) {
  const int64_t over = value % step;
  if (over == 0) return value;
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  return value > most - (step - over) ? most / step * step : value + (step - over);
}

// Nanoseconds to transfer `size_bytes`, rounded up. Saturates; a zero rate takes the largest value.
constexpr int64_t transfer_ns(int64_t size_bytes, int64_t bytes_per_second) {
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  if (size_bytes <= 0) return 0;
  if (bytes_per_second <= 0) return most;
  const Wide nanos = (Wide{size_bytes} * kNanosPerSecond + bytes_per_second - 1) / bytes_per_second;
  return nanos > most ? most : static_cast<int64_t>(nanos);
}

// Bytes transferred in a time, rounded down. Saturates.
constexpr int64_t transferred_bytes(int64_t duration_ns, int64_t bytes_per_second) {
  if (duration_ns <= 0 || bytes_per_second <= 0) return 0;
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  const Wide bytes = Wide{duration_ns} * bytes_per_second / kNanosPerSecond;
  return bytes > most ? most : static_cast<int64_t>(bytes);
}

// value * numerator / denominator without overflow, rounded down; the denominator is positive.
constexpr int64_t scale(int64_t value, int64_t numerator, int64_t denominator) {
  return static_cast<int64_t>(Wide{value} * numerator / denominator);
}

}  // namespace spillway::base
