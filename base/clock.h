// The time since some moment in the past, for measuring how long something takes.
#pragma once

#include <time.h>

#include <cstdint>

namespace spillway::base {

inline std::uint64_t MonotonicNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace spillway::base
