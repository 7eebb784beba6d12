// A short sleep, for polling. A signal ends the pause early.
#pragma once

#include <time.h>

#include <cstdint>

namespace spillway::base {

inline void Pause(std::int64_t pause_ns) {
  const timespec pause{pause_ns / 1'000'000'000, pause_ns % 1'000'000'000};
  nanosleep(&pause, nullptr);
}

}  // namespace spillway::base
