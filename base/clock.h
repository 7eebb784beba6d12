// This machine's clocks in nanoseconds.
#pragma once

#include <time.h>

#include <cstdint>

namespace spillway::base {

constexpr std::int64_t NanosOf(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

inline std::int64_t NowNs(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return NanosOf(now);
}

// Since an unspecified moment: for durations only.
inline std::uint64_t MonotonicNs() { return static_cast<std::uint64_t>(NowNs(CLOCK_MONOTONIC)); }

// Since 1970, as file times are.
inline std::int64_t RealtimeNs() { return NowNs(CLOCK_REALTIME); }

}  // namespace spillway::base
